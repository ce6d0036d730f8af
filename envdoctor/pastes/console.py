"""Answers to expressions (`torch.__version__`, `python -c "print(…)"`), and libraries' own log lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from envdoctor import lazy_re as re
from envdoctor.facts import ComputeCapability, CudaVersion, Symptom
from envdoctor.matrix.lexicon import PackageNames
from envdoctor.pastes.sightings import Paste, Sighting, card_sighting, distribution_sightings

_PROMPT = re.compile(r"^In \[\d{1,4}\]: ")
_OUT = re.compile(r"^Out\[\d{1,4}\]: ")
_COMMAND = re.compile(r"\bpython[\d.]{0,5}(?:\.exe)? (?:-\w )?-c (?:\"(.{1,300})\"|'(.{1,300})')\s{0,8}$")
_ASKED = re.compile(r"\.(?:__version__|version\.cuda|cuda\.\w{3,30}\()")
LONG = 300
"""Letters of the longest line that is read as an expression."""
UNAVAILABLE = "SYM-CUDA-SAID-UNAVAILABLE"
_ENGINE = re.compile(r"(?:LLM engine \(v|vLLM API server version |vLLM engine \(v)(\d[\w.+]{1,40})")
_DEEPSPEED = re.compile(r"DeepSpeed info: version=(\d[\w.+]{1,40}?),")
_HIGHEST = re.compile(r"Highest compute capability among GPUs detected: (\d{1,2})\.(\d)")
_BNB = re.compile(
    r"settings found: CUDA_VERSION=(\d{2,4}), Highest Compute Capability: \(?(\d{1,2})(?:\.|, )(\d)"
)


def parse_console(paste: Paste) -> Iterator[Sighting]:
    """Yield what expressions typed at a prompt were answered, and versions in start-up lines."""
    lines = paste.lines
    for index, line in enumerate(lines):
        if "LLM" in line and (match := _ENGINE.search(line)):
            yield from distribution_sightings("vllm", match[1].rstrip("."), paste.at("vLLM log", index), True)
        elif "DeepSpeed info" in line and (match := _DEEPSPEED.search(line)):
            yield from distribution_sightings("deepspeed", match[1], paste.at("DeepSpeed log", index), True)
        elif "compute capability among" in line and (match := _HIGHEST.search(line)):
            yield from _capability(f"({match[1]}, {match[2]})", paste.at("bitsandbytes", index))
        elif "CUDA_VERSION=" in line and (match := _BNB.search(line)):
            yield from _bitsandbytes(match, paste.at("bitsandbytes", index))
        elif "." in line and len(line) < LONG and _ASKED.search(line):
            yield from _answered(paste, index)


def _answered(paste: Paste, index: int) -> Iterator[Sighting]:
    """Yield what the lines below an expression, or a program of one line, printed of it."""
    from envdoctor.pastes.expressions import parse_printed

    line = _PROMPT.sub("", paste.lines[index])
    command = _COMMAND.search(line)
    below = (i for i in range(index + 1, min(index + 12, len(paste.lines))) if paste.lines[i].strip())
    code = command[1] or command[2] if command else line.strip()
    for asked, looks in parse_printed(code, command is None):
        place = next(below, None)
        shown = _OUT.sub("", paste.lines[place]).strip() if place is not None else ""
        match = re.fullmatch(looks, shown)
        if place is None or match is None:
            return
        paste.claimed.update((index, place))
        for (name, what), answer in zip(asked, match.groups(), strict=True):
            yield from _told(name, what, answer, paste.at("Python prompt", place), paste.packages)


def _told(name: str, what: str, answer: str, source: str, packages: PackageNames) -> Iterator[Sighting]:
    if what == "__version__":
        if known := packages.find(name):
            yield from distribution_sightings(known, answer, source, exact=True)
    elif name == "torch":
        for key, tell in _ANSWERS.items():
            if key in what:
                yield from tell(answer, source)


def _available(answer: str, source: str) -> Iterator[Sighting]:
    if answer == "True":
        yield Sighting("build", ("torch", {"available": True}), source)
    else:
        yield Sighting("symptom", Symptom(UNAVAILABLE, f"torch.cuda.is_available() {answer}", source))


def _cuda(answer: str, source: str) -> Iterator[Sighting]:
    if re.fullmatch(r"\d{1,2}\.\d{1,2}", answer):
        yield Sighting("build", ("torch", {"cuda": answer}), source)
    elif answer == "None":
        yield Sighting("build", ("torch", {"cuda": None, "variant": "cpu"}), source)


def _name(answer: str, source: str) -> Iterator[Sighting]:
    if 2 < len(answer) < 80 and "Error" not in answer:
        yield card_sighting(source, name=answer)


def _capability(answer: str, source: str) -> Iterator[Sighting]:
    if match := re.fullmatch(r"\((\d{1,2}), (\d)\)", answer):
        capability = ComputeCapability(int(match[1]), int(match[2]))
        yield card_sighting(source, compute_capability=capability)


def _arch_list(answer: str, source: str) -> Iterator[Sighting]:
    if archs := re.findall(r"(?:sm|compute)_\d{2,3}[af]?", answer):
        yield Sighting("build", ("torch", {"arch_list": archs}), source)


_ANSWERS: Mapping[str, Callable[[str, str], Iterator[Sighting]]] = {
    "version.cuda": _cuda,
    "get_device_name": _name,
    "get_device_capability": _capability,
    "get_arch_list": _arch_list,
    "is_available": _available,
}


def _bitsandbytes(match: re.Match[str], source: str) -> Iterator[Sighting]:
    try:
        cuda = CudaVersion.parse(f"cu{match[1]}")
    except ValueError:
        return
    yield Sighting("build", ("torch", {"cuda": str(cuda)}), source)
    capability = ComputeCapability(int(match[2]), int(match[3]))
    yield card_sighting(source, compute_capability=capability)
