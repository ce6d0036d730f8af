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
        "urllib3",
        "1.26.18 2.0.7 2.2.3 2.5.0",
        ("urllib3",),
        "import urllib3; urllib3.PoolManager(retries=False).request('GET', 'http://localhost:1')",
    ),
    ("openai", "0.28.1 1.3.9 1.30.5 1.58.1 2.6.0", ("openai",), "import openai; openai.OpenAI()"),
    (
        "datasets",
        "2.16.1 2.19.2 3.0.2 3.6.0 4.1.0",
        ("datasets",),
        "import datasets; datasets.load_dataset('./no such folder here')",
    ),
    (
        "gradio",
        "4.44.1 5.9.1 5.30.0 6.1.0",
        ("gradio",),
        "import gradio; gradio.Interface(fn=3, inputs=4, outputs=5)",
    ),
    (
        "starlette",
        "0.27.0 0.36.3 0.41.3 0.46.2",
        ("starlette",),
        "from starlette.routing import Route; Route('a', print)",
    ),
    ("click", "8.0.4 8.1.7 8.2.1", ("click",), "import click; click.Option(['a b'])"),
    (
        "networkx",
        "2.8.8 3.1 3.2.1 3.3 3.4.2",
        ("networkx",),
        "import networkx; networkx.shortest_path(networkx.Graph(), 1, 2)",
    ),
    (
        "scikit-learn",
        "1.2.2 1.3.2 1.4.2 1.5.2 1.6.1",
        ("scikit-learn",),
        "from sklearn.linear_model import LinearRegression; LinearRegression().predict([[1]])",
    ),
    (
        "pillow",
        "9.5.0 10.1.0 10.4.0 11.0.0 11.2.1",
        ("pillow",),
        "from PIL import Image; Image.open('nowhere')",
    ),
    (
        "numpy",
        "1.24.4 1.26.4 2.0.2 2.2.6 2.3.5",
        ("numpy",),
        "import numpy; numpy.linalg.inv(numpy.zeros((2, 3)))",
    ),
    (
        "tokenizers",
        "0.19.1 0.21.0 0.22.1",
        ("huggingface-hub",),
        "import tokenizers, huggingface_hub; huggingface_hub.snapshot_download('a/b/c')",
    ),
    ("peewee", "3.16.3 3.17.9", ("peewee",), "import peewee; peewee.CharField().bind(3, 4)"),
    ("typer", "0.9.4 0.12.5 0.15.1", ("typer",), "import typer; typer.run(3)"),
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
            more = ["--with", "numpy<2"] if library in ("pandas", "scikit-learn") else []
            command[-1:-1] = more
            done = subprocess.run(command, input=program, capture_output=True, text=True)
            if done.returncode:
                print(f"{library} {release}: {done.stderr.strip()[-200:]}")
                continue
            (options.folder / f"{library}-{release}.txt").write_text(done.stdout)


if __name__ == "__main__":
    main()
