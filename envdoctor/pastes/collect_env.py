"""What only `collect_env` of torch and of vLLM print: GPUs, `[pip3]`, `[conda]`, variables, cuDNN's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from envdoctor import lazy_re as re
from envdoctor.facts import Gpu, NativeLibrary
from envdoctor.facts.quantities import parse_size
from envdoctor.pastes.gpus import parse_capability
from envdoctor.pastes.sightings import Paste, Sighting, distribution_sightings

_GPU = re.compile(
    r"^\W{0,4}(?:GPU models and configuration\s{0,8}:\s{0,8})?GPU (\d{1,3}(?:,\d{1,3}){0,63}): (\S.{0,100})$"
)
_PACKAGE = re.compile(
    r"^\W{0,4}\[(pip3?|conda)\]\s{1,4}([A-Za-z0-9][\w.-]{0,80})(?:==|\s+)(\d[\w.+!-]{0,60})(?:\s+(\S{1,60}))?"
)
_CUDNN = re.compile(r"libcudnn(?:_\w{1,40})?\.so\.(\d{1,2}\.\d{1,2}\.\d{1,3})\b")
_VARIABLE = re.compile(
    r"^\s{0,8}(?:-\s+)?(?:export\s+|ENV\s+|set\s+|-e\s+)?([A-Z][A-Z0-9_]{2,60})\s?=\s?[\"']?([^\s\"';&]{1,400})"
)
_KEPT = re.compile(
    r"^(?:CUDA|NCCL|PYTORCH|TORCH|LD_LIBRARY_PATH|LD_PRELOAD|VLLM|HF_HOME|HF_HUB_OFFLINE|TRANSFORMERS_OFFLINE|NVIDIA|BNB|"
    r"BITSANDBYTES|DS_|DEEPSPEED|ACCELERATE|FLASH|XFORMERS|MAX_JOBS|OMP_|WORLD_SIZE|LOCAL_WORLD_SIZE|PYTHONNOUSERSITE|ROCR)"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH")

_ASKS_NVCC = re.compile(r"\W{0,4}(?:/bin/)?sh: (?:line )?(?:\d{1,4}: )?\S{0,80}nvcc: (?:command )?not found$")


def asks_nvcc(lines: Sequence[str], index: int) -> bool:
    """True for what the shell says above a report of SGLang's check_env, which asks nvcc for its version."""
    asks = _ASKS_NVCC.match(lines[index].rstrip())
    return bool(asks) and any(
        line.lstrip("* ").startswith("Python: 3") for line in lines[index + 1 : index + 3]
    )


def parse_collect_env(paste: Paste) -> Iterator[Sighting]:
    """Yield what the multi-line parts of collect_env and lines `NAME=value` tell.

    SGLang's check_env writes cards of one name on a line: `GPU 0,1,2,3: NVIDIA L40`.
    """
    gpus: dict[int, Gpu] = {}
    for index, line in paste.unclaimed():
        if "GPU " in line and (match := _GPU.match(line)):
            gpus.update(_gpu(match, paste.at("collect_env", index)))
            paste.claimed.add(index)
        elif "[pip" in line or "[conda]" in line:
            yield from _package(paste, index, line)
        elif "libcudnn" in line and (match := _CUDNN.search(line)) and "=>" not in line:
            library = NativeLibrary("cudnn", line.strip()[:300], "ldconfig", match[1])
            yield Sighting("library", library, paste.at("collect_env", index))
            paste.claimed.add(index)
        elif "=" in line and (match := _VARIABLE.match(line)):
            yield from _variable(match, paste, index)
    if gpus:
        yield Sighting("gpus", tuple(gpus[i] for i in sorted(gpus)))


def _gpu(match: re.Match[str], source: str) -> dict[int, Gpu]:
    name = match[2].partition("(UUID:")[0].strip()
    memory, capability = parse_size(name), parse_capability(name)
    name = name.partition("(")[0].rstrip()
    card = Gpu(0, source, name=name, memory_total_bytes=memory, compute_capability=capability)
    return {int(index): replace(card, index=int(index)) for index in match[1].split(",")}


def _package(paste: Paste, index: int, line: str) -> Iterator[Sighting]:
    match = _PACKAGE.match(line)
    if match is None:
        return
    paste.claimed.add(index)
    name = match[2]
    if match[1] == "conda":
        name = {"pytorch": "torch"}.get(name, name)
        if name.startswith(
            ("blas", "mkl", "lib", "_", "cudatoolkit", "pytorch-cuda", "pytorch-mutex", "ffmpeg")
        ):
            return
    yield from distribution_sightings(name, match[3], paste.at("collect_env", index), exact=True)


def _variable(match: re.Match[str], paste: Paste, index: int) -> Iterator[Sighting]:
    name, value = match[1], match[2]
    if _KEPT.match(name) and not _SECRET.search(name):
        yield Sighting("variable", (name, value), paste.at("environment variables", index))
