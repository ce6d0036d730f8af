"""Sets that `pin` solves, really installed with uv and imported as their users import them.

    python benchmarks/installed.py [--names transformers,trl] [--days 2024-06-01,2025-06-01,today]
    python benchmarks/installed.py -r requirements.txt --import 'import a; from b import c'

Each set gets an environment of its own, which goes when it was judged; uv's cache is shared. A set that does
not install or import is printed with its last line: it is to become a general fact. Needs the index and, for
sets with torch, some gigabytes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

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
    "lm-eval": "import lm_eval; from lm_eval import simple_evaluate",
    "openai": "import openai; openai.OpenAI(api_key='x')",
    "tensorboard": "from tensorboard.summary import Writer; import tensorboard.main",
    "scikit-learn": "from sklearn.linear_model import LogisticRegression; import sklearn.metrics",
    "matplotlib": "import matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as p; p.plot([1, 2])",
}
DAYS = ("2024-06-01", "2025-06-01", "today")


def main() -> int:
    """Print a line a set, and how many are clean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", default=",".join(USED))
    parser.add_argument("--days", default=",".join(DAYS))
    parser.add_argument("--python", default=PYTHON)
    parser.add_argument("-r", dest="file")
    parser.add_argument("--import", dest="code", default="")
    args = parser.parse_args()
    sets = [(["-r", args.file], args.code)] if args.file else [([n], USED[n]) for n in args.names.split(",")]
    told = []
    for day in args.days.split(",") if not args.file else ("today",):
        for request, code in sets:
            dated = [] if day == "today" else ["--exclude-newer", day]
            told.append(judged([*request, *dated], code, args.python))
            print(" ".join([*request, *dated]), told[-1] or "clean", flush=True)
    print(f"{told.count('')} of {len(told)} installed and imported")
    return int(any(told))


def judged(words: list[str], code: str, python: str) -> str:
    """Return why a set is not clean; "" where it is."""
    with tempfile.TemporaryDirectory() as folder:
        pins, venv = Path(folder) / "pins.txt", Path(folder) / "venv"
        target = ["--python-version", python, "--platform", PLATFORM, "--allow-source"]
        answer = ["pin", *words, *target, "--format", "requirements", "-o", str(pins)]
        interpreter = str(venv / "bin" / "python")
        steps = (
            ("pin", [sys.executable, "-m", "envdoctor", *answer]),
            ("venv", ["uv", "venv", "-q", "--python", python, str(venv)]),
            (
                "install",
                ["uv", "pip", "install", "-q", "--no-deps", "--python", interpreter, "-r", str(pins)],
            ),
            ("check", ["uv", "pip", "check", "--python", interpreter]),
            ("import", [interpreter, "-c", code]),
        )
        for step, command in steps:
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet())
            if done.returncode:
                last = (done.stderr.strip() or done.stdout.strip() or "?").splitlines()
                return f"{step}: {' | '.join(last[-3:])[:400]}"
    return ""


def quiet() -> dict[str, str]:
    """Return an environment in which nothing is asked of a hub or a card."""
    return {**os.environ, "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "CUDA_VISIBLE_DEVICES": ""}


if __name__ == "__main__":
    sys.exit(main())
