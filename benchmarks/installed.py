"""Sets that `pin` solves, really installed with uv and imported as their users import them.

    python benchmarks/installed.py [--names transformers,trl] [--days 2024-06-01,2025-06-01,today]
    python benchmarks/installed.py -r requirements.txt --import 'import a; from b import c'
    python benchmarks/installed.py --sets LIST    # lines: FOLDER FILE [DAY]; imports are those of its sources

A set of a folder is pinned for its code (`--code FOLDER`), as its users would.

Each set gets an environment of its own, which goes when it was judged; uv's cache is shared (UV_CACHE_DIR).
A set that does not install or import is printed with its last lines: it is to become a general fact. Needs
the index; `--empty-cuda` (gcc) leaves NVIDIA's packages out and puts empty libraries in their place, so that
a set with torch takes a fifth of the disk. What only a build with nvcc gives (`NVCC`) is left out and named;
lines that point to a place (git, URLs) are left out, too.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import empty_cuda

PYTHON, PLATFORM = "3.11", "x86_64-manylinux_2_35"
USED = {
    "torch": "import torch, torch.utils.data; torch.ones(2) @ torch.ones(2)",
    "torchvision": "from torchvision import models, transforms; models.resnet18()",
    "transformers": "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments",
    "peft": "from peft import LoraConfig, get_peft_model",
    "trl": "from trl import SFTTrainer, DPOTrainer",
    "accelerate": "from accelerate import Accelerator; Accelerator(cpu=True)",
    "datasets": "from datasets import Dataset; Dataset.from_dict({'a': [1]}).to_pandas()",
    "sentence-transformers": "from sentence_transformers import SentenceTransformer, CrossEncoder",
    "diffusers": "from diffusers import StableDiffusionPipeline, UNet2DConditionModel",
    "gradio": "import gradio; gradio.Blocks()",
    "wandb": "import wandb",
    "evaluate": "import evaluate",
    "bitsandbytes": "import bitsandbytes",
    "lightning": "import lightning; from lightning.pytorch import Trainer",
    "timm": "import timm; timm.create_model('resnet18')",
    "optimum": "import optimum; from optimum.version import __version__",
    "lm-eval": "from lm_eval import evaluator; evaluator.simple_evaluate",
    "openai": "import openai; openai.OpenAI(api_key='x')",
    "tensorboard": "from tensorboard.summary import Writer; import tensorboard.main",
    "scikit-learn": "from sklearn.linear_model import LogisticRegression; import sklearn.metrics",
    "matplotlib": "import matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as p; p.plot([1, 2])",
    "llama-index": "from llama_index.core import VectorStoreIndex, Settings",
    "langchain": "import langchain; from langchain_core.prompts import PromptTemplate",
    "langchain-community": "from langchain_community import vectorstores, document_loaders",
    "faiss-cpu": "import faiss; faiss.IndexFlatL2(4)",
    "chromadb": "import chromadb; chromadb.EphemeralClient()",
    "spacy": "import spacy; spacy.blank('en')('a b')",
    "onnxruntime": "import onnxruntime; onnxruntime.get_available_providers()",
    "pytorch-lightning": "from pytorch_lightning import Trainer; Trainer(accelerator='cpu', logger=False)",
    "torchaudio": "import torchaudio; from torchaudio import transforms; transforms.Spectrogram()",
    "ray": "import ray; ray.remote",
    "mlflow": "import mlflow; mlflow.set_tracking_uri('file:///tmp/none')",
    "fastapi": "from fastapi import FastAPI; FastAPI()",
    "streamlit": "import streamlit; streamlit.write",
    "jupyterlab": "import jupyterlab.labapp",
    "seaborn": "import seaborn; seaborn.set_theme()",
    "xgboost": "import xgboost; xgboost.Booster()",
    "librosa": "import librosa; import numpy; librosa.feature.mfcc(y=numpy.zeros(22050))",
    "openai-whisper": "import whisper; whisper.available_models()",
    "opencv-python-headless": "import cv2; cv2.__version__",
    "numba": "import numba; numba.njit(lambda x: x + 1)(1)",
    "torchmetrics": "from torchmetrics import Accuracy; Accuracy(task='binary')",
    "open-clip-torch": "import open_clip; open_clip.list_models()",
    "controlnet-aux": "import controlnet_aux",
    "auto-gptq": "import auto_gptq",
    "ultralytics": "from ultralytics import YOLO",
    "deepspeed": "import deepspeed",
    "outlines": "import outlines",
    "instructor": "import instructor",
    "litellm": "import litellm; litellm.completion",
    "easyocr": "import easyocr",
    "umap-learn": "import umap; umap.UMAP()",
    "hydra-core": "import hydra; from omegaconf import OmegaConf",
}
DAYS = ("2024-06-01", "2025-06-01", "today")
NVCC = re.compile(
    r"(flash[-_]attn|apex|mamba[-_]ssm|causal[-_]conv1d|transformer[-_]engine\S*)\s*==", re.IGNORECASE
)
TRY = """
import importlib.util, json, os, sys, traceback, warnings
warnings.simplefilter("ignore")
asked, told = json.load(open(sys.argv[1])), open(sys.argv[2], "a", buffering=1)
def absent(words):
    parts = [*words[1].split("."), *words[3:4]]
    for length in range(1, len(parts) + 1):
        found = importlib.util.find_spec(".".join(parts[:length]))
        if found is None or found.origin: return found is None
for statement in asked:
    root = statement.split()[1].split(".")[0]
    told.write(json.dumps([statement, "crashed"]) + chr(10))
    try:
        if root in getattr(sys, "stdlib_module_names", ()): said = ""
        elif absent(statement.split()): said = "absent"
        else: exec(statement, {}); said = ""
    except BaseException:
        said = traceback.format_exc()[-1500:]
    told.write(json.dumps([statement, said]) + chr(10))
"""


def main() -> int:
    """Print a line a set, and how many are clean."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", default=",".join(USED))
    parser.add_argument("--days", default=",".join(DAYS))
    parser.add_argument(
        "--pairs", type=Path, help="a file of lines 'DAY PACKAGE...' in place of names and days"
    )
    parser.add_argument("--sets", type=Path)
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("--empty-cuda", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for the answers and what did not import")
    parser.add_argument("-r", dest="file")
    parser.add_argument("--import", dest="code", default="")
    args = parser.parse_args()
    with ThreadPoolExecutor(args.jobs) as pool:
        told = list(pool.map(lambda one: _shown(one, args), _asked(args)))
    print(f"{told.count('')} of {len(told)} installed and imported")
    return int(any(told))


def _asked(args: argparse.Namespace) -> list[tuple[list[str], Path | str]]:
    """Return each set: the words for `pin`, and code to run or the folder whose sources tell it."""
    if args.file:
        return [(["-r", args.file], args.code)]
    if args.sets:
        rows = [line.split() for line in args.sets.read_text().splitlines() if line.strip()]
        return [
            (["-r", f"{f}/{name}", "--code", f, *_dated(day[0] if day else "today")], Path(f))
            for f, name, *day in rows
        ]
    if args.pairs:
        rows = [line.split() for line in args.pairs.read_text().splitlines() if line.strip()]
        return [([*names, *_dated(day)], "; ".join(USED[name] for name in names)) for day, *names in rows]
    names = args.names.split(",")
    return [([name, *_dated(day)], USED[name]) for day in args.days.split(",") for name in names]


def _dated(day: str) -> list[str]:
    return [] if day == "today" else ["--exclude-newer", day]


def _shown(one: tuple[list[str], Path | str], args: argparse.Namespace) -> str:
    words, code = one
    said = judged(words, code, args)
    print(" ".join(words), said or "clean", flush=True)
    return said


def judged(words: list[str], code: Path | str, args: argparse.Namespace) -> str:
    """Return why a set is not clean; "" where it is."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        pins, venv, wanted = home / "pins.txt", home / "venv", home / "wanted.txt"
        target = ["--python-version", args.python, "--platform", PLATFORM, "--allow-source"]
        answer = [
            sys.executable,
            "-m",
            "envdoctor",
            "pin",
            *words,
            *target,
            "--format",
            "requirements",
            "-o",
            str(pins),
        ]
        done = _run(answer)
        name = re.sub(r"[^\w.=-]+", "_", "_".join(words))[-120:]
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
            (args.keep / f"{name}.said").write_text(f"{done.returncode}\n{done.stdout}{done.stderr}")
        if not pins.exists() or done.returncode not in (0, 3):
            return f"pin: {_last(done)}"
        if args.keep:
            (args.keep / f"{name}.pins").write_text(pins.read_text())
        lines, left = _installable(pins.read_text(), args.empty_cuda)
        wanted.write_text("\n".join(lines) + "\n")
        python = str(venv / "bin" / "python")
        # what builds a source release is of the day of the answer, too
        install = [
            "uv",
            "pip",
            "install",
            "-q",
            "--no-deps",
            *(words[words.index("--exclude-newer") :][:2] if "--exclude-newer" in words else ()),
        ]
        steps = (
            ("venv", ["uv", "venv", "-q", "--python", args.python, str(venv)]),
            ("install", [*install, "--python", python, "-r", str(wanted)]),
            ("check", ["uv", "pip", "check", "--python", python]),
        )
        for step, command in steps:
            done = _run(command)
            unmet = _unmet(done.stderr, args.empty_cuda, left) if step == "check" else [_last(done)]
            if done.returncode and unmet:
                return f"{step}: {' | '.join(unmet)[:600]}"
        site = next((venv / "lib").glob("python*/site-packages"))
        if args.empty_cuda:
            empty_cuda.put_in(home / "cuda", site)
        where = {"LD_LIBRARY_PATH": str(home / "cuda")}
        if isinstance(code, str):
            done = _run([python, "-c", code], **where)
            return f"import: {_last(done)}" if done.returncode else ""
        failed, absent, tried = _imported(python, code, home, where)
        if args.keep:
            (args.keep / f"{name}.bad").write_text(json.dumps([failed, absent, tried, left], indent=1))
        print(
            f"  {name}: {tried} imports, absent: {' '.join(absent)}; left out: {' '.join(left)}",
            flush=True,
        )
        return " || ".join(f"{s}: {said.strip().splitlines()[-1][:200]}" for s, said in failed.items())


def _installable(text: str, empty: bool) -> tuple[list[str], list[str]]:
    """Return the lines to install, and the names of those left out."""
    lines, left = [], []
    for line in text.splitlines():
        bare = line.split("#")[0].strip()
        if NVCC.match(bare) or bare.startswith("-e ") or ("://" in bare and not bare.startswith("-")):
            left.append(re.split(r"[=@ ]", bare)[0])
        elif not (empty and re.match(r"(nvidia-(?!ml-py)|cuda-(?!bindings|core|pathfinder|python))", bare)):
            lines.append(line)
    return lines, left


def _unmet(text: str, empty: bool, left: list[str]) -> list[str]:
    """Return what uv's check complains of, less what was left out."""
    spared = tuple(f"`{name.lower().replace('_', '-')}`" for name in left)
    told = [line for line in text.splitlines() if line.startswith("The package")]
    said = [line for line in told if " requires " in line]  # a wheel may be tagged otherwise inside
    return [
        line
        for line in said
        if not (
            empty
            and re.search(r"requires `(nvidia-(?!ml-py)|cuda-(?!bindings|core|pathfinder|python))", line)
        )
        and not any(f"requires {n}"[:-1] in line for n in spared)
    ]


def statements(folder: Path) -> list[str]:
    """Return the imports at the top level of the sources in a folder, less its own modules."""
    sources = [p for p in folder.rglob("*.py") if not {"tests", "test", "docs", "build"} & set(p.parts)]
    own = {p.stem for p in folder.rglob("*.py")} | {p.name for p in folder.rglob("*") if p.is_dir()}
    found: dict[str, None] = {}
    for source in sources:
        try:
            body = ast.parse(source.read_text(errors="replace")).body
        except (SyntaxError, ValueError):
            continue
        for node in body:
            if isinstance(node, ast.Import):
                found |= {f"import {a.name}": None for a in node.names if a.name.split(".")[0] not in own}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [a.name for a in node.names if a.name != "*"]
                known = node.module.split(".")[0] in own | {"__future__"}
                found |= {} if known else {f"from {node.module} import {name}": None for name in names}
    return list(found)


def _imported(
    python: str, folder: Path, home: Path, where: dict[str, str]
) -> tuple[dict[str, str], list[str], int]:
    """Return what each import that failed said, which modules are not there, and how many were tried."""
    script, asked, told = home / "try.py", home / "asked.json", home / "told.jsonl"
    script.write_text(TRY)
    left, said = statements(folder), {}
    while left:
        asked.write_text(json.dumps(left))
        told.write_text("")
        _run([python, str(script), str(asked), str(told)], **where)
        answers = [json.loads(line) for line in told.read_text().splitlines()]
        said |= dict(answers)
        seen = {statement for statement, _ in answers}
        left = [s for s in left if s not in seen] if seen else []
    absent = {s.split()[1].split(".")[0] for s, text in said.items() if text == "absent"}
    failed, alone = {}, set[str]()
    for statement, text in [(s, text) for s, text in said.items() if text not in ("", "absent")]:
        last = text.strip().splitlines()[-1]
        if last not in alone:  # what failed alone once fails alone for each that met the same
            done = _run([python, "-c", statement], **where)
            if not done.returncode:
                continue
            text = done.stderr[-1500:] or f"exit {done.returncode}"
            alone |= {last} if text.strip().splitlines()[-1] == last else set()
        failed[statement] = text
    return failed, sorted(absent), len(said)


def _last(done: subprocess.CompletedProcess[str]) -> str:
    last = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()
    return " | ".join(last[-3:])[:600]


def _run(command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    """Run a step in an environment in which nothing is asked of a hub or a card."""
    quiet = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "agg"}
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **quiet, **more},
            timeout=900,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", "took over 900 s")


if __name__ == "__main__":
    sys.exit(main())
