"""Words of a paste that tell of another accelerator than NVIDIA's: ROCm, Ascend, Intel's GPUs, Apple's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.pastes.sightings import Paste, Sighting, distribution_sightings
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class _Word:
    """A wording, and what it tells: a build of torch, a distribution, an operating system, or WSL."""

    pattern: re.Pattern[str]
    place: str
    value: str


_WORDS = (
    _Word(
        re.compile(
            r"(?i)rocm used to build pytorch: \d|(?<![+\w])rocm[- ]?(?:smi|\d)|\bgfx ?(?:9|1[01])\w{1,3}\b|"
            r"\b(?:AMDGPU_TARGETS|HSA_OVERRIDE_GFX_VERSION|HIP_VISIBLE_DEVICES)=\w|\b(?:LLAMA|GGML)_HIP(?:BLAS)?=[1Oo]|"
            r"\bHIP (?:error\b|runtime version: \d)|\bhip(?:error|blas)|"
            r"\bInstinct\b|\bMI(?:210|250X?|3\d\d[XA])\b",
            re.ASCII,
        ),
        "build",
        "rocm",
    ),
    _Word(
        re.compile(
            r"(?i)\btorch[-_]npu\b|\bvllm[-_]ascend\b|\bAscend ?(?:910|310|NPU)|\bnpu-smi\b", re.ASCII
        ),
        "distribution",
        "torch-npu",
    ),
    _Word(
        re.compile(r"(?i)\+xpu\b|\bxpu:\d|Intel\(R\) (?:Arc|Data Center GPU)|\bipex-llm\b", re.ASCII),
        "build",
        "xpu",
    ),
    _Word(
        re.compile(
            r"(?i)\bMPS backend\b|\bmps:0\b|\bApple (?:M[1-9]|Silicon)\b|"
            r"\bMac(?:OS|Book)?(?: Pro| Air| mini| Studio)?,? (?:with |on )?M[1-9]\b|"
            r"\bM[1-9] (?:MacOS|Mac|MacBook|Max|Ultra)\b|\bdevice[ =:'\"]{1,4}mps\b",
            re.ASCII,
        ),
        "os",
        "macos",
    ),
    _Word(
        re.compile(
            r"(?i)\b(?:on|in|under|inside|using|running) (?:an? |my )?(?:Windows 1[01],? )?\(?WSL ?2?\b|"
            r"^[-*# (]{0,6}WSL ?2?\b|\bWSL ?2? ?[(\[]?Ubuntu|"
            r"\bUbuntu[ \d.LTS]{0,12} ?[(\[]?(?:on |in |under )?WSL",
            re.ASCII,
        ),
        "wsl",
        "wsl",
    ),
    _Word(
        re.compile(
            r"(?i)\b(?:running |am |using |my |on (?:a |native )?)Windows (?:1[01]|Server)\b"
            r"(?! ?(?:wsl|with wsl|\(wsl))|"
            r"^(?![^\n]{0,400}(?:linux|ubuntu|wsl|\bmac|subsystem|support|tested|works? on))"
            r"[^\n]{0,300}\bWindows (?:1[01]|Server)\b|"
            r"^(?![^\n]{0,200}(?:linux|ubuntu|wsl|\bmac))"
            r"(?:[^\n]{0,120}[,;|] ?)?Windows(?: 1[01])?(?: x64| native)?(?=$|[,;|])|"
            r"(?i:windows ?(?:下|系统|平台|环境|电脑|上)|在 ?windows)|"
            r"\bI(?:'m| am)? (?:on|us(?:e|ing)|run(?:ning)?(?: on)?) Windows\b(?!.{0,24}(?:wsl|subsys))|"
            r"File \"[A-Z]:\\[^\"\n]{1,200}\.py\", line \d",
            re.ASCII,
        ),
        "os",
        "windows",
    ),
)


def parse_backends(paste: Paste, hints: Sequence[str]) -> Iterator[Sighting]:
    """Yield what the first wording of each accelerator tells; a line that tells of one holds a hint."""
    told: set[str] = set()
    for index, line in enumerate(paste.lines):
        low = line.lower()
        if not any(hint in low for hint in hints):
            continue
        for word in _WORDS:
            if word.value not in told and word.pattern.search(line):
                told.add(word.value)
                yield from _sightings(word, paste.at("", index))


def _sightings(word: _Word, source: str) -> Iterator[Sighting]:
    if word.place == "build":
        yield Sighting("build", ("torch", {"variant": word.value, "cuda": None}), source)
    elif word.place == "distribution":
        yield from distribution_sightings(word.value, "installed", source)
    elif word.place == "wsl":
        yield Sighting("host.wsl", True, source)
        yield Sighting("host.os", "linux", source)
    else:
        yield Sighting("host.os", word.value, source)
        if word.value == "macos":
            yield Sighting("host.arch", "arm64", source)
