"""Provokes errors in releases of libraries and writes their tracebacks, for `datings.py`.

    python benchmarks/provoked.py FOLDER

Each release is installed by uv beside what it needs, for one run; the text holds the traceback as the
interpreter printed it, and the versions that ran. Reads the package index.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

_TELL = (
    "import importlib.metadata as m, traceback\n"
    "for name in {names!r}:\n    print(name + '==' + m.version(name))\n"
    "print(flush=True)\n"
    "try:\n{code}\nexcept BaseException:\n    print(traceback.format_exc())\n"
)
PROVOKED = (
    (
        "transformers",
        "4.36.2 4.40.0 4.44.1 4.48.3 4.51.3 4.55.0 5.0.0 5.5.0 5.12.0 5.20.0",
        ("transformers", "huggingface-hub"),
        "from transformers import AutoConfig; AutoConfig.from_pretrained('./no such folder here')",
    ),
    (
        "pydantic",
        "1.10.13 2.4.2 2.7.1 2.10.6",
        ("pydantic",),
        "import pydantic; pydantic.BaseModel.parse_obj(3)",
    ),
    ("httpx", "0.24.1 0.26.0 0.27.2 0.28.1", ("httpx",), "import httpx; httpx.get('nowhere')"),
    ("requests", "2.25.1 2.28.2 2.31.0 2.32.3", ("requests",), "import requests; requests.get('nowhere')"),
    (
        "huggingface-hub",
        "0.17.3 0.20.2 0.23.4 0.27.0 0.34.0 1.1.0",
        ("huggingface-hub",),
        "import huggingface_hub; huggingface_hub.hf_hub_download('a/b/c', 'config.json')",
    ),
    (
        "pandas",
        "1.5.3 2.0.3 2.2.2",
        ("pandas",),
        "import pandas; pandas.DataFrame({'a': [1]})['b']",
    ),
    ("jinja2", "3.0.3 3.1.4", ("jinja2",), "import jinja2; jinja2.Template('{{ a')"),
    ("fsspec", "2023.6.0 2024.5.0 2025.3.0", ("fsspec",), "import fsspec; fsspec.filesystem('nowhere')"),
    ("packaging", "21.3 23.2 24.1", ("packaging",), "from packaging.version import Version; Version('a b')"),
    (
        "omegaconf",
        "2.1.2 2.3.0",
        ("omegaconf",),
        "import omegaconf; omegaconf.OmegaConf.create({'a': '${b}'}).a",
    ),
)
"""Library, releases, whose versions are told, and code that fails in it."""


def main() -> None:
    """Write one text a release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for library, releases, names, code in PROVOKED:
        for release in releases.split():
            program = _TELL.format(names=names, code=f"    {code}")
            command = [
                "uv",
                "run",
                "--no-project",
                "--python",
                "3.11",
                "--with",
                f"{library}=={release}",
                "-",
            ]
            more = ["--with", "numpy<2"] if library == "pandas" else []
            command[-1:-1] = more
            done = subprocess.run(command, input=program, capture_output=True, text=True)
            if done.returncode:
                print(f"{library} {release}: {done.stderr.strip()[-200:]}")
                continue
            (options.folder / f"{library}-{release}.txt").write_text(done.stdout)


if __name__ == "__main__":
    main()
