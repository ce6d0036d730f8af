"""Lines of the form `label: value`: loose ones, and the env reports of many tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from envdoctor import lazy_re as re
from envdoctor.facts import CudaVersion, DriverVersion, NativeLibrary, Toolkit
from envdoctor.facts.quantities import parse_size
from envdoctor.matrix.card_names import CardNames
from envdoctor.matrix.lexicon import PackageNames
from envdoctor.pastes.distributions import ELSEWHERE
from envdoctor.pastes.gpus import Listed, find_gpus, parse_capability, parse_gpus, with_those_above
from envdoctor.pastes.settings import KeyTable, setting_sightings
from envdoctor.pastes.sightings import Paste, Sighting, card_sighting, distribution_sightings

_LINE = re.compile(
    r"^[\s\-*•+#|`\"'\[\]>~✓✅]{0,16}(?:\[(?:pip3?|conda)\]\s*)?"
    r"([A-Za-z操显驱系模深内][^:=|\n]{0,60}?)\s*(?:==?|:|\||\s-\s|\.{3,}|\t|\s{2,})[\s:|=]{0,40}(\S.*)"
)
_SPACED = re.compile(
    r"^[\s\-*•+|`]{0,12}([A-Za-z][\w-]{1,40}(?:\sversion)?)\s+[`v]{0,2}"
    r"(?!\S{1,40}\s{1,4}[A-Za-z][\w-]{1,40}\s{1,4}v?\d{1,4}\.\d)([\d<>=~!].{0,120})$"
)
"""A name and its version, and no second pair on the line."""
_WORDED = re.compile(r"(?i)^[\s\-*•+|`]{0,12}(gpus?|os|container|model)\s+(\S.{1,60})$")
_RUNS = re.compile(r"[ \t]{3,}")
_SEVERAL = re.compile(
    r"[,;]\s{0,4}(?=[^\d\s<>=~!])|\s{1,4}(?:and|with|on)\s{1,4}|\s{1,4}(?!(?i:ver|type|model|name|list))(?=[A-Za-z][\w.-]{1,40}\s?[:=]\s)"
)
_REMARK = re.compile(r"\s*#+\s*[a-z]+_[a-z_]+\s*[:=]")
"""A key of a settings file that is commented out."""
_PIN = re.compile(r"(?<![\w.=-])[A-Za-z][\w.-]{1,40}==\d[\w.+*]{0,40}")
_PAIR = re.compile(r"[A-Za-z]\w{0,40}=[^\s=,]{1,80}")
_LABEL = 2
"""Words beside pins by which a line is still a list of them, no sentence."""
_PLURAL = re.compile(r"[,;]|\s(?:and|with|on)\s|[:=][^:=]+[:=]")
_FOREIGN = re.compile(
    r"\(you have |\bcompiled (?:w\.|with\b|for\b|against\b)|\bbuilt (?:with|for|against)\b|"
    r"\d[`'\")]{0,2} ?(?:→|[-=]>|⇒) ?[`'\"]{0,2}(?:[A-Za-z][\w-]{1,40}[ =]{1,3})?v?\d|"
    rf"\bis not supported\b|\bcan ?not (?:be )?install|{ELSEWHERE}"
)
_ABSENT = re.compile(
    r"(?i)^(?:n/?a|none|not (?:installed|found|available|specified)|no|unknown|could not collect|<.*>|\?)\W*$"
)
_CUDA = re.compile(r"(\d{1,2}\.\d{1,2})(?:\.\d{1,4}){0,2}(?![\d])|\bcu(\d{2})(\d)\b")
_CUDA_MAJORS = range(7, 20)
"""What a whole number can mean as a version of CUDA; a lower one is a device's: `cuda:1`."""
DRIVERS = r"\d{3}(?:\.\d{1,5}){0,3}(?: ?/ ?\d{3}(?:\.\d{1,5}){0,3}){0,3}"
"""A driver's version, or those of several machines: `570/575`."""
_DRIVER = re.compile(rf"(?<![\d.])[rR]?({DRIVERS})(?![\d])")
_PYTHON = re.compile(r"(?i)^(?:cpython|python|py)?\s{0,4}[-=]{0,2}\s{0,4}[v`]?(\d\.\d{1,2}(?:\.\d{1,2})?)")

Handler = Callable[[str, str], Iterator[Sighting]]

NAMELESS = CardNames()


def parse_labelled(paste: Paste, table: KeyTable) -> Iterator[Sighting]:
    """Yield what `label: value` lines tell of the machine, its distributions and a run's settings."""
    near_driver, previous = -9, ""
    listed = Listed()
    for index, line in paste.loose():
        source = paste.at("", index)
        if _FOREIGN.search(line):
            continue
        statements = _split_statements(line, table, paste.packages)
        for label, value, key in _uncontrasted(statements, paste.packages):
            label = _in_context(label, line, index - near_driver, previous)
            found = list(_told(label, value, source, paste))
            if not (found or _REMARK.match(line)):
                found = list(setting_sightings(table, key, _within_quotes(value), source))
            if label.startswith(("driver", "nvidia driver")):
                near_driver = index
            if found and statements == [line] and not _tells_more(label, value, found, paste):
                paste.claimed.add(index)
            listed, found = with_those_above(listed, index, label, found)
            yield from found
        previous = fold_label(line.partition(":")[0])


def _within_quotes(value: str) -> str:
    """Return what stands in the quotes that a value begins with; the value where it begins with none."""
    end = value.find(value[0], 1) if value[:1] in ("'", '"') else -1
    return value[: end + 1] if end > 0 else value


def _tells_more(label: str, value: str, found: Sequence[Sighting], paste: Paste) -> bool:
    """True where more is listed: `torch==2.1 trl 0.9.6`, `Python 3.12, A100`, `method: LoRA, ZeRO-3`."""
    if " " not in value or any(sighting.place == "gpus" for sighting in found):
        return False
    if "," in value and any(sighting.place == "setting" for sighting in found):
        return True
    if find_gpus(value, "", paste.cards):
        return True
    packages, mine = paste.packages, paste.packages.find(label)
    named = packages.mentions.finditer(value) if mine else ()
    return any(packages.find(m["name"].lower()) != mine for m in named)


def _uncontrasted(statements: Sequence[str], packages: PackageNames) -> Iterator[tuple[str, str, str]]:
    """Yield the parts of statements; of a package of which two releases are set against each other, none."""
    split = [_split(statement) for statement in statements]
    for label, value, key in split:
        others = {other for name, other, _ in split if name == label and other != value}
        if not (others and packages.find(label)):
            yield label, value, key


def _in_context(label: str, line: str, since_driver: int, previous: str) -> str:
    """Return whose CUDA a bare `CUDA` means: the driver's under its version, torch's indented below torch."""
    if label == "cuda version" and since_driver <= 2:
        return "driver cuda"
    if label == "cuda" and line.startswith((" ", "\t")) and previous in ("pytorch", "torch"):
        return "torch cuda"
    return label


def _split_statements(line: str, table: KeyTable, packages: PackageNames) -> list[str]:
    """Return the statements in a line; a piece that begins no known one belongs to the one before it."""
    pins = _PIN.findall(line) if line.count("==") > 1 else []
    if len(pins) > 1 and len(_PIN.sub("", line).split()) <= _LABEL:
        return pins
    if line.count("=") > 1 and all(map(_PAIR.fullmatch, line.split())):
        return line.split()
    short = _RUNS.sub("  ", line.strip())
    if _SEVERAL.search(short) is None or _PLURAL.search(line) is None:
        return [line]
    found: list[str] = []
    for piece in _SEVERAL.split(short):
        if found and not _begins(piece, table, packages):
            found[-1] += f", {piece}"
        else:
            found.append(piece)
    return found


def _begins(piece: str, table: KeyTable, packages: PackageNames) -> bool:
    label, _, key = _split(piece)
    return bool(label) and (_handler(label, packages) is not None or bool(table.find(key)))


def _split(line: str) -> tuple[str, str, str]:
    """Return folded label, value and the label as it stands; empty texts when the line is no statement."""
    line = _RUNS.sub("  ", line)
    match = _LINE.match(line) or _SPACED.match(line) or _WORDED.match(line)
    if match is None:
        return "", "", ""
    return fold_label(match[1]), match[2].strip().strip("|").strip(), match[1]


def fold_label(label: str) -> str:
    """Return a label as it is looked up: lower case, no markup, no trailing `version`."""
    return " ".join(
        label.lower().replace("_", " ").strip(" .`*\"'-|").replace("`", "").replace("*", "").split()
    )


def _told(label: str, value: str, source: str, paste: Paste) -> Iterator[Sighting]:
    handler = _handler(label, paste.packages) if label else None
    if handler is not _built_with and _ABSENT.match(value):
        handler = None
    if handler is _gpus:
        yield from _gpus(value, source, paste.cards)
    elif handler is not None:
        yield from handler(value, source)


def _handler(label: str, packages: PackageNames) -> Handler | None:
    """Return what reads the value under a folded label, or None for a label that nobody knows."""
    if handler := HANDLERS.get(label):
        return handler
    label = re.sub(r"\s?\([^)]{0,80}\)", "", label)
    short = re.sub(r"\s?\b(?:version|versions|ver|info)\b|版本", "", label).strip(" .'?")
    if handler := HANDLERS.get(label) or HANDLERS.get(short):
        return handler
    name = packages.find(short)
    return partial(_distribution, name) if name else None


def _distribution(name: str, value: str, source: str) -> Iterator[Sighting]:
    yield from distribution_sightings(name, value, source)


def _python(value: str, source: str) -> Iterator[Sighting]:
    if match := _PYTHON.match(value):
        yield Sighting("environment.python", match[1], source)
    elif re.search(r"\d", value):
        yield Sighting("note", f"Python is told only as a range: {value[:60]} ({source})")


def _cuda(value: str) -> CudaVersion | None:
    match = _CUDA.search(value)
    if match is None:
        whole = re.match(r"v?(\d{1,2})(?![\w.])", value)
        return CudaVersion(int(whole[1]), 0) if whole and int(whole[1]) in _CUDA_MAJORS else None
    return CudaVersion.parse(match[1]) if match[1] else CudaVersion(int(match[2]), int(match[3]))


def _some_cuda(value: str, source: str) -> Iterator[Sighting]:
    """A CUDA version of which nobody says whose it is: kept as a toolkit without a place."""
    if version := _cuda(value):
        yield Sighting("toolkit", Toolkit(version, "", f"{source} (which CUDA is not told)"), source)


def _toolkit(value: str, source: str) -> Iterator[Sighting]:
    if version := _cuda(value):
        yield Sighting("toolkit", Toolkit(version, "nvcc", source, active=True), source)


def _image_cuda(value: str, source: str) -> Iterator[Sighting]:
    if version := _cuda(value):
        yield Sighting("toolkit", Toolkit(version, "container image", source), source)


def newest_driver(told: str) -> DriverVersion:
    """Return the newest of the `DRIVERS` that are told: what it is too old for, the others are, too."""
    return max(DriverVersion.parse(one.strip()) for one in told.split("/"))


def _driver(value: str, source: str) -> Iterator[Sighting]:
    if match := _DRIVER.search(value):
        yield Sighting("driver.version", newest_driver(match[1]), source)
    if match := re.search(r"(?i)cuda(?: version)?[: ]{0,3}(\d{1,2}\.\d{1,2})", value):
        yield Sighting("driver.cuda", CudaVersion.parse(match[1]), source)
    if match := re.search(r"(?i)\b(open) kernel module|\bkernel module\b", value):
        yield Sighting("driver.module", "open" if match[1] else "proprietary", source)


def _driver_cuda(value: str, source: str) -> Iterator[Sighting]:
    if version := _cuda(value):
        yield Sighting("driver.cuda", version, source)


def _torch_cuda(value: str, source: str) -> Iterator[Sighting]:
    if version := _cuda(value):
        yield Sighting("build", ("torch", {"cuda": str(version)}), source)


def _built_with(value: str, source: str) -> Iterator[Sighting]:
    """`None` is what torch says of a build without CUDA; where there is no torch a report has N/A."""
    if value == "None":
        yield Sighting("build", ("torch", {"cuda": None}), source)
    yield from _torch_cuda(value, source)


def _gpus(value: str, source: str, cards: CardNames = NAMELESS) -> Iterator[Sighting]:
    if gpus := parse_gpus(value, source, cards):
        yield Sighting("gpus", gpus)
    if match := re.search(r"(?i)driver(?: version)?[: ]{0,3}(\d{3}(?:\.\d{1,5}){0,2})", value):
        yield Sighting("driver.version", DriverVersion.parse(match[1]), source)


def _available(value: str, source: str) -> Iterator[Sighting]:
    if value.strip().lower() == "true":
        yield Sighting("build", ("torch", {"available": True}), source)


def _gpu_count(value: str, source: str) -> Iterator[Sighting]:
    if match := re.match(r"(\d{1,3})(?![\w.])", value):
        yield Sighting("gpu_count", int(match[1]), source)


def _gpu_memory(value: str, source: str) -> Iterator[Sighting]:
    if memory := parse_size(value):
        yield card_sighting(source, memory_total_bytes=memory)


def _capability(value: str, source: str) -> Iterator[Sighting]:
    if capability := parse_capability(f"capability {value}"):
        yield card_sighting(source, compute_capability=capability)


def _platform(value: str, source: str) -> Iterator[Sighting]:
    from envdoctor.pastes.platforms import parse_platform

    yield from parse_platform(value, source)


def _container(value: str, source: str) -> Iterator[Sighting]:
    from envdoctor.pastes.platforms import parse_container

    yield from parse_container(value, source)


def _glibc(value: str, source: str) -> Iterator[Sighting]:
    if match := re.search(r"(2\.\d{1,2})", value):
        yield Sighting("host.glibc", match[1], source)


def _memory(place: str) -> Handler:
    def handler(value: str, source: str) -> Iterator[Sighting]:
        if (size := parse_size(value)) is not None:
            yield Sighting(place, size, source)

    return handler


def _cudnn(value: str, source: str) -> Iterator[Sighting]:
    if match := re.match(r"v?(\d{1,2}\.\d{1,2}(?:\.\d{1,3}){0,2})", value):
        version = match[1]
    elif match := re.match(r"(\d{4,5})\b", value):
        number = int(match[1])
        large = number >= 10000
        version = (
            f"{number // 10000}.{number % 10000 // 100}.{number % 100}"
            if large
            else f"{number // 1000}.{number % 1000 // 100}.{number % 100}"
        )
    else:
        return
    yield Sighting("library", NativeLibrary("cudnn", "", "told", version, wins=True), source)


def arch_list(value: str, source: str) -> Iterator[Sighting]:
    """Yield the architectures that torch was compiled for."""
    archs = re.findall(r"(?:sm|compute)_\d{2,3}[af]?", value)
    if archs:
        yield Sighting("build", ("torch", {"arch_list": archs}), source)


def _cpus(value: str, source: str) -> Iterator[Sighting]:
    if match := re.match(r"(\d{1,5})\b", value):
        yield Sighting("host.cpu_count", int(match[1]), source)


def _cxx11(value: str, source: str) -> Iterator[Sighting]:
    if match := re.match(r"(?i)(true|false|1|0)\b", value):
        yield Sighting("build", ("torch", {"cxx11_abi": match[1].lower() in ("true", "1")}), source)


_TABLE: tuple[tuple[Handler, str], ...] = (
    (_python, "python, python version, python ver, py, python 版本"),
    (
        _driver,
        """driver, drivers, nvidia driver, nvidia drivers, gpu driver, cuda driver, driver version, nvidia
        driver version, nvidia-driver, nvidia-driver version, driver versions, kmd version, nvrm
        version, nvidia kernel driver, 显卡驱动, 驱动, 驱动版本, kernel driver""",
    ),
    (
        _driver_cuda,
        """driver cuda, driver cuda version, cuda umd version, cuda driver version, max cuda, cuda
        (driver), cuda (nvidia-smi), nvidia-smi cuda""",
    ),
    (
        _torch_cuda,
        """torch cuda, pytorch cuda, torch cuda version, cuda (pytorch), cuda (torch), pytorch.cuda version,
        torch.cuda, pytorch cuda version, pytorch compiled with cuda""",
    ),
    (_built_with, "torch.version.cuda, cuda used to build pytorch"),
    (
        _toolkit,
        """nvcc, nvcc version, cuda toolkit, cuda toolkit version, cuda runtime version, cuda compiler,
        cuda (nvcc), nvcc cuda, system cuda, cuda toolkit (nvcc), local cuda, cudatoolkit, cuda-toolkit""",
    ),
    (_image_cuda, "container cuda, image cuda, docker cuda, cuda (container), cuda image"),
    (_some_cuda, "cuda, cuda version, cuda ver, cuda 版本, cuda版本"),
    (
        _gpus,
        """gpu, gpus, gpu type, gpu model, gpu models, gpu name, gpu models and configuration, graphics
        card, video card, cuda device, cuda devices, cuda device(s), device, device name, accelerator,
        pytorch accelerator, gpu info, hardware, card,
        显卡, 显卡型号, gpu型号, gpu 型号, gpu.name, gpu(s), nvidia
        gpu, gpu device, product name, gpu 0, gpu 1""",
    ),
    (_available, "is cuda available, cuda available"),
    (_gpu_count, "gpu number, gpu count, number of gpus, number of gpu, num gpus, gpu数量, 卡数, gpu num"),
    (_gpu_memory, "gpu memory, vram, gpu vram, gpu ram, 显存, gpu显存"),
    (
        _capability,
        """compute capability, gpu.compute capability, cuda capability, device capability, torch.cuda.get
        device capability(), cc, gpu cc, sm""",
    ),
    (
        _platform,
        """os, platform, operating system, system, system platform, python platform, os version,
        系统, 操作系统,
        os platform, distro, linux, linux distribution""",
    ),
    (_glibc, "glibc, glibc version, libc, libc version"),
    (_container, "container, docker, docker image, image, container image, 镜像"),
    (_memory("host.memory_total_bytes"), "system ram, ram, cpu ram, host memory, system memory, 内存"),
    (_memory("host.shm_bytes"), "shm, /dev/shm, shared memory (/dev/shm) size, shm size, shm-size"),
    (_cudnn, "cudnn, cudnn version, cudnn runtime, torch.backends.cudnn.version(), cudnn runtime version"),
    (arch_list, "torch.cuda.get arch list(), arch list, torch.cuda.get arch list, cuda arch list"),
    (_cxx11, "torch.c. glibcxx use cxx11 abi, cxx11 abi, cxx11abi, glibcxx use cxx11 abi"),
    (_cpus, "cpu(s), cpu count, cpus"),
)

HANDLERS: Mapping[str, Handler] = {
    **{" ".join(label.split()): handler for handler, labels in _TABLE for label in labels.split(",")},
    "torch. version": lambda value, source: iter(distribution_sightings("torch", value, source)),
    "pytorch.version": lambda value, source: iter(distribution_sightings("torch", value, source)),
}
"""What to make of a value, by folded label."""
