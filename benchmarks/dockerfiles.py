"""Dockerfiles of public projects with planted faults: `python benchmarks/dockerfiles.py FOLDER [--count 60]`.

Every file of FOLDER is judged as it is (an error found there is printed, to be read by a person), then once
for each fault that is appended to it or made of its base. A fault counts as found when its finding is there.
Where the file has that very fault by itself, nothing is planted.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import io
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from envdoctor.cli import main as command

BASE = re.compile(
    r"^FROM\s+(?:--\S+\s+)?(?:docker\.io/)?nvidia/cuda:1[1-3]\.\S*-(devel|runtime)", re.MULTILINE
)
OTHERS = re.compile(r"rocm|ascend|cann|npu|xpu|hpu|gaudi|tpu", re.IGNORECASE)
"""Images for other accelerators, of which nothing of CUDA is said."""
BUILD = "RUN pip install --no-build-isolation git+https://github.com/NVIDIA/apex"
APPENDED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("RUN pip install flash-attn==2.6.3", "IMAGE-TORCH-FIRST", ()),
    ("RUN pip install torch==2.1.0 numpy==2.1.0", "NUMPY2-TORCH", ()),
    ("RUN <<EOF\npip install vllm==0.5.0 torch==2.4.0\nEOF", "VLLM-TORCH", ()),
    (
        "ARG TOK=0.15.0\nRUN --mount=type=cache,target=/root/.cache pip install transformers==4.46.2 \\\n"
        "# held back\n    tokenizers==${TOK}",
        "tokenizers",
        (),
    ),
    ("RUN pip install torch==2.6.0 bitsandbytes==0.45.0", "BNB-TRITON-OPS", ()),
    ('ENV CUDA_VISIBLE_DEVICES=""', "GPU-HIDDEN", ("--gpu", "RTX 3090")),
    ('ENV TORCH_CUDA_ARCH_LIST="7.0 7.5"', "ARCH-LIST-LACKS-CARD", ("--gpu", "RTX 3090")),
    ("RUN pip install --force-reinstall torch==2.5.1", "TORCH-ARCH", ("--gpu", "RTX 5090")),
    ("RUN uv venv --python 3.13\nRUN uv pip install torch==2.1.0", "IMAGE-PYTHON", ()),
    ("RUN pip install torch==2.5.1\nENV NVIDIA_DRIVER_CAPABILITIES=graphics", "IMAGE-DRIVER-CAP", ()),
    ("ENV NVIDIA_DRIVER_CAPABILITIES compute,video", "IMAGE-DRIVER-CAP", ()),
)
REMARK = """
# without it: ImportError: libGL.so.1: cannot open shared object file: No such file or directory
RUN echo more && \\
    # RuntimeError: CUDA error: no kernel image is available for execution on the device
    true
"""
"""Errors that a remark quotes: nothing of them may be found."""


def judged(text: str, *words: str) -> list[str]:
    """Return each error and warning found: severity, id, summary."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Dockerfile"
        path.write_text(text, encoding="utf-8")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command(["diagnose", "--from", str(path), "--format", "json", *words])
    if code not in (0, 1, 3):
        return [f"REFUSED {err.getvalue().strip()}"]
    found = json.loads(out.getvalue())["findings"]
    return [f"{one['severity']} {one['id']} {one['summary']}" for one in found if one["severity"] != "note"]


def planted(text: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the text with a fault in it, what a finding of it names, and more options."""
    for step, named, words in APPENDED:
        yield f"{text.rstrip()}\n{step}\n", named, words
    base = BASE.search(text)
    if base and len(re.findall(r"^FROM\s", text, re.MULTILINE)) == 1:
        yield text, "DRIVER-CONTAINER-IMAGE", ("--driver", "418.40.04")
        if not re.search("nvcc|toolkit|cuda-", text.replace(base[0], "")):
            plain = text.replace(base[0], base[0].replace("-devel", "-runtime"))
            yield f"{plain.rstrip()}\n{BUILD}\n", "IMAGE-NO-NVCC", ()
            devel = text.replace(base[0], base[0].replace("-runtime", "-devel"))
            other = "cu118" if "cuda:12" in base[0] else "cu124"
            torch = f"RUN pip install torch==2.4.1 --index-url https://download.pytorch.org/whl/{other}"
            yield f"{devel.rstrip()}\n{torch}\n{BUILD}\n", "IMAGE-CUDA-MAJOR", ()


def main() -> None:
    """Print what is found as they stand, what is missed, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=60)
    args = parser.parse_args()
    paths = sorted(args.folder.iterdir(), key=lambda path: hashlib.sha256(path.name.encode()).digest())
    tried, hits = collections.Counter[str](), collections.Counter[str]()
    errors = remarks = 0
    for path in paths[: args.count]:
        text = path.read_text(encoding="utf-8")
        before = judged(text)
        more = set(judged(text.rstrip() + REMARK)) - set(before)
        if more:
            print(f"{path.name}: a remark's error is found: {more}", flush=True)
        remarks += bool(more)
        wrong = [one for one in before if one.startswith(("error", "REFUSED"))]
        errors += bool(wrong)
        if wrong:
            print(f"{path.name}: as it is: {wrong}", flush=True)
        for changed, named, words in () if OTHERS.search(text) else planted(text):
            if any(named in one for one in before):
                continue
            found = any(named in one for one in judged(changed, *words))
            tried[named] += 1
            hits[named] += found
            if not found:
                print(f"{path.name}: missed {named}", flush=True)
    print(
        f"{min(args.count, len(paths))} files, {errors} with an error as they are, {remarks} with a remark's"
    )
    print(f"{sum(hits.values())} of {sum(tried.values())} planted faults found: ", end="")
    print(", ".join(f"{named} {hits[named]}/{count}" for named, count in tried.items()))


if __name__ == "__main__":
    main()
