"""What names of systems, kernels and images tell of the host."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.facts import CudaVersion, Toolkit
from envdoctor.pastes.sightings import Sighting, distribution_sightings

_GLIBC = re.compile(r"(?i)glibc[ -_]{0,2}v?(2\.\d{1,2})")
_KERNEL = re.compile(
    r"(?i)\blinux-(\d{1,2}\.\d{1,3}[\w.+-]{0,60}?)(?=-(?:x86_64|aarch64)|-with|\s|$)|\b(?:kernel|linux)\s+(\d\.\d{1,3}\.\d[\w.-]{0,40})"
)
_DISTRO = re.compile(
    r"(?i)\b(ubuntu|debian|centos|rocky|fedora|red hat(?: enterprise linux)?|rhel|arch linux|a"
    r"lmalinux|amazon linux|opensuse|kylin|openeuler|manjaro)"
    r"(?:\s?(?:gnu/linux|linux|stream|release|server|core|wsl))?[\s:-]{0,2}v?(\d{1,2}(?:\.\d{1,2}){0,2})?"
)
_IMAGE = re.compile(r"\b((?:[\w.-]{1,60}(?::\d{1,5})?/){0,4}[\w.-]{1,60}:[\w][\w.+-]{1,80})")
_CUDA_IMAGE = re.compile(r"\bcuda:?-?(\d{1,2}\.\d{1,2})")
_NAMED_IMAGE = re.compile(r"\b(vllm-openai|sglang|llamafactory):v?(\d+\.\d+\.\d+(?:\.post\d+)?)")
"""Images that carry the release of what they are named for in their tag."""
_TORCH_IMAGE = re.compile(r"\bpytorch/pytorch:(\d+\.\d+\.\d+)-cuda(\d+\.\d+)")


def parse_platform(text: str, source: str) -> Iterator[Sighting]:
    """Yield what an `OS:` or `Platform:` line tells: system, distribution, kernel, glibc, machine, WSL."""
    folded = text.lower()
    wsl = "wsl" in folded or "microsoft-standard" in folded
    if wsl:
        yield Sighting("host.wsl", True, source)
    distro = _DISTRO.search(text)
    if "windows" in folded and not wsl:
        yield Sighting("host.os", "windows", source)
    elif "macos" in folded or "darwin" in folded:
        yield Sighting("host.os", "macos", source)
    elif wsl or distro or "linux" in folded:
        yield Sighting("host.os", "linux", source)
    if distro:
        yield Sighting("host.distro", " ".join(" ".join(filter(None, distro.groups())).split()), source)
    if match := _GLIBC.search(text):
        yield Sighting("host.glibc", match[1], source)
    if match := _KERNEL.search(text):
        yield Sighting("host.kernel", match[1] or match[2], source)
    if match := re.search(r"(?i)x86_64|aarch64|\barm64\b|\bamd64\b", text):
        arch = {"arm64": "aarch64", "amd64": "x86_64"}.get(match[0].lower(), match[0].lower())
        yield Sighting("host.arch", arch, source)


def parse_named_image(text: str, source: str) -> Iterator[Sighting]:
    """Yield the release of what an image is named for, where its tag has it."""
    if match := _NAMED_IMAGE.search(text):
        yield from distribution_sightings(match[1].removesuffix("-openai"), match[2], source)


def parse_container(text: str, source: str) -> Iterator[Sighting]:
    """Yield what the name of a container image or engine tells."""
    text = text.strip().strip("`'\"")
    if match := re.search(r"(?i)\b(?:nvcr|ngc)\b.{0,30}?\bpytorch\b\D{0,12}(\d\d\.\d\d)", text):
        yield Sighting("host.container", f"nvcr.io/nvidia/pytorch:{match[1]}-py3", source)
        return
    if match := _IMAGE.search(text):
        yield Sighting("host.container", match[1], source)
        yield from _image_contents(match[1], source)
        return
    if match := re.search(r"(?i)\b(docker|kubernetes|k8s|podman|singularity|apptainer|none)\b", text):
        name = {"k8s": "kubernetes", "apptainer": "singularity"}.get(match[1].lower(), match[1].lower())
        yield Sighting("host.container", name, source)


def _image_contents(image: str, source: str) -> Iterator[Sighting]:
    if match := _TORCH_IMAGE.search(image):
        yield from distribution_sightings("torch", match[1], source, exact=True)
        yield Sighting("build", ("torch", {"cuda": match[2]}), source)
    elif match := _CUDA_IMAGE.search(image):
        yield Sighting("toolkit", Toolkit(CudaVersion.parse(match[1]), "container image", source), source)
    yield from parse_named_image(image, source)
    if match := re.search(r"ubuntu(\d\d)\.?(\d\d)", image):
        yield Sighting("host.distro", f"ubuntu {match[1]}.{match[2]}", source)
