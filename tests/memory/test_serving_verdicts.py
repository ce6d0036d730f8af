"""One engine, asked of three commands: memory, diagnose and profile say the same of whether it starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envdoctor.cli import main

STARTS, REFUSES, UNSURE = "starts", "refuses", "uncertain"
OF_MEMORY = {
    "--gpu-memory-utilization": "--vllm-utilization",
    "--quantization": "--quant",
    "--tensor-parallel-size": "--tp",
    "--pipeline-parallel-size": "--pp",
    "half": "fp16",
    "float32": "fp32",
}
"""What vLLM's own words are in `envdoctor memory`."""
SEARCHED = frozenset(("--max-model-len", "--tensor-parallel-size", "--gpu-memory-utilization"))
"""What `profile` chooses among, or is told."""
LLAMA, QWEN = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen2.5-7B-Instruct"
SETTINGS = [
    (LLAMA, "L40S", "0.11.2", "--max-model-len 8192 --gpu-memory-utilization 0.95", STARTS),
    (LLAMA, "L40S", "0.11.2", "--max-model-len 8192 --gpu-memory-utilization 0.97", REFUSES),
    (LLAMA, "RTX 3090", "0.11.2", "--max-model-len 131072", REFUSES),
    (LLAMA, "RTX 3090", "0.9.2", "--max-model-len 16384", STARTS),
    (LLAMA, "RTX 3090", "0.20.1", "--max-model-len 16384 --kv-cache-dtype fp8", STARTS),
    (LLAMA, "L4", "0.20.1", "--max-model-len 16384 --quantization fp8", STARTS),
    (LLAMA, "RTX 4090", "0.20.1", "--max-model-len 131072 --quantization bitsandbytes", REFUSES),
    (QWEN, "T4", "0.8.5", "--dtype half --max-model-len 2048", REFUSES),
    (QWEN, "RTX 4090", "0.8.5", "--max-model-len 8192 --gpu-memory-utilization 0.6", REFUSES),
    (QWEN, "RTX 4090", "0.11.0", "--pipeline-parallel-size 2 --max-model-len 32768", STARTS),
    (QWEN, "RTX 4090", "0.11.0", "--quantization awq --max-model-len 8192", UNSURE),
    (QWEN, "RTX 4090", "0.11.0", "--dtype float32 --max-model-len 8192", REFUSES),
    (QWEN, "RTX 4090", "0.11.0", "--tensor-parallel-size 8 --max-model-len 8192", UNSURE),
    ("Qwen/Qwen2.5-7B-Instruct-AWQ", "T4", "0.8.5", "--dtype half --quantization awq", STARTS),
    ("Qwen/Qwen2.5-7B-Instruct-AWQ", "RTX 4090", "0.11.0", "--quantization awq_marlin", STARTS),
    ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "RTX 4090", "0.11.0", "--quantization gptq_marlin", STARTS),
    ("Qwen/Qwen2.5-7B-Instruct-AWQ", "RTX 4090", "0.11.0", "--quantization bitsandbytes", UNSURE),
    ("Qwen/Qwen2.5-14B-Instruct", "RTX 4090", "0.11.0", "--max-model-len 4096", REFUSES),
    ("Qwen/Qwen2.5-14B-Instruct", "A100-40GB", "0.11.0", "--gpu-memory-utilization 0.98", REFUSES),
    ("Qwen/Qwen2.5-14B-Instruct", "A100", "0.11.0", "--max-model-len 32768", STARTS),
    ("Qwen/Qwen2.5-32B-Instruct", "A100", "0.11.0", "--max-model-len 32768", UNSURE),
    ("Qwen/Qwen2.5-32B-Instruct", "A100-80GB", "0.16.0", "--tensor-parallel-size 2", STARTS),
    ("Qwen/Qwen2.5-32B-Instruct", "L40S", "0.16.0", "--tensor-parallel-size 2 --max-model-len 8192", STARTS),
    ("Qwen/Qwen2.5-72B-Instruct", "H100", "0.18.0", "--tensor-parallel-size 2 --max-model-len 4096", UNSURE),
    ("meta-llama/Llama-3.3-70B-Instruct", "H200", "0.20.0", "--max-model-len 4096", REFUSES),
    ("meta-llama/Llama-3.3-70B-Instruct", "H100", "0.10.1", "--tensor-parallel-size 8", STARTS),
    ("openai/gpt-oss-20b", "RTX 4090", "0.18.0", "--max-model-len 131072", STARTS),
    ("openai/gpt-oss-120b", "H100-80GB", "0.10.1", "--max-model-len 131072", REFUSES),
    ("deepseek-ai/DeepSeek-R1", "H200", "0.18.0", "--tensor-parallel-size 8", STARTS),
    ("deepseek-ai/DeepSeek-R1", "H100", "0.18.0", "--tensor-parallel-size 8", REFUSES),
    ("Qwen/Qwen3-30B-A3B", "A100-80GB", "0.14.1", "--max-model-len 32768", STARTS),
    ("Qwen/Qwen3-30B-A3B", "RTX 5090", "0.14.1", "--max-model-len 32768", REFUSES),
    ("google/gemma-3-27b-it", "L40S", "0.11.2", "--max-model-len 8192", REFUSES),
    ("mistralai/Mistral-7B-Instruct-v0.3", "A10", "0.6.6", "--max-model-len 4096", STARTS),
    ("Qwen/Qwen3-0.6B", "T4", "0.20.2", "--dtype half --max-model-len 8192", STARTS),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "RTX 4090", "0.11.0", "--max-model-len 8192", UNSURE),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", "H200", "0.20.0", "--max-model-len 8192", UNSURE),
]


def told(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, Any]:
    """What a command answers; nothing where it refuses the question."""
    main([*command, "--format", "json"])
    out = capsys.readouterr().out
    return dict(json.loads(out)) if out else {}


def by_memory(capsys: pytest.CaptureFixture[str], model: str, card: str, vllm: str, flags: str) -> str:
    words = [OF_MEMORY.get(word, word) for word in flags.split()]
    asked = ("--model", model, "--task", "serve", "--gpu", card, "--stack", f"vllm={vllm}")
    answer = told(capsys, "memory", *asked, *words)
    if not answer or answer["uncertain"]:
        return UNSURE
    return STARTS if answer["fits"] else REFUSES


def by_diagnose(capsys: pytest.CaptureFixture[str], start: Path, cards: list[str]) -> str:
    answer = told(capsys, "diagnose", "--from", str(start), *cards)
    outcome = next(check["outcome"] for check in answer["checks"] if check["rule"] == "VLLM-BUDGET")
    return {"passed": STARTS, "failed": REFUSES}.get(outcome, UNSURE)


def number(flags: str, name: str) -> int:
    words = flags.split()
    return int(words[words.index(name) + 1]) if name in words else 1


@pytest.mark.parametrize(("model", "card", "vllm", "flags", "verdict"), SETTINGS)
def test_memory_and_diagnose_give_one_verdict(
    model: str, card: str, vllm: str, flags: str, verdict: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    start = tmp_path / "serve.txt"
    start.write_text(f"vllm=={vllm}\n\nvllm serve {model} {flags}\n")
    count = number(flags, "--tensor-parallel-size") * number(flags, "--pipeline-parallel-size")
    cards = ["--gpu", card] * count
    assert by_memory(capsys, model, card, vllm, flags) == verdict
    assert by_diagnose(capsys, start, cards) == verdict


@pytest.mark.parametrize(("model", "card", "vllm", "flags", "verdict"), SETTINGS)
def test_what_profile_chooses_starts_by_memory_and_by_diagnose(
    model: str, card: str, vllm: str, flags: str, verdict: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    longest, tp = str(max(2048, number(flags, "--max-model-len"))), number(flags, "--tensor-parallel-size")
    asked = ("--model", model, "--task", "serve", "--seq", longest, "--stack", f"vllm={vllm}")
    found = told(capsys, "profile", *asked, *["--gpu", card] * tp)
    if not found:
        assert verdict == UNSURE
        return
    for one in found["rejected"]:
        kept = one["choice"]
        share = f"--gpu-memory-utilization 0.95 --max-num-seqs {kept['max_num_seqs']}"
        few = f"--max-model-len {longest} --tensor-parallel-size {kept['vllm_tp']} {share}"
        assert by_memory(capsys, model, card, vllm, few) != STARTS
    if (choice := found["choice"]) is None:
        assert verdict != STARTS or not SEARCHED.issuperset(flags.split()[::2])
        return
    share = f"--gpu-memory-utilization {choice['vllm_utilization']} --max-num-seqs {choice['max_num_seqs']}"
    chosen = f"--max-model-len {longest} --tensor-parallel-size {choice['vllm_tp']} {share}"
    said = by_memory(capsys, model, card, vllm, chosen)
    assert said != REFUSES
    start = tmp_path / "serve.txt"
    start.write_text(f"vllm=={vllm}\n\nvllm serve {model} {chosen}\n")
    assert by_diagnose(capsys, start, ["--gpu", card] * choice["vllm_tp"]) == said
