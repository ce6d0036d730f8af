"""Which GPUs a CUDA program sees here: hidden by CUDA_VISIBLE_DEVICES, lost, or cut up and not handed out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import commands
from envdoctor.facts import Gpu, Unknown
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View, explained, symptoms
from envdoctor.values import dataclass

NAME, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
SOURCE = "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html"
DRIVER_SOURCE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/index.html"
CONTAINER_SOURCE = (
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html"
)
MIG_SOURCE = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/index.html"
LOST_SOURCE = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html"
NO_DEVICES = ("SYM-NO-CUDA-GPUS", "SYM-NO-DEVICE")
_ORDINAL = re.compile(r"[ \t]*([+-]?[0-9]{1,9})")
_WISHED = re.compile(r"[ \t]*(-1|none|nodevfiles|void)?[ \t]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Visible:
    """The GPUs that a value leaves, in its order, and why it leaves no more (None: as it was meant)."""

    gpus: tuple[Gpu, ...]
    why: str | None = None


def visible_gpus(view: View) -> tuple[Gpu, ...]:
    """Return the GPUs that a CUDA program sees; raises FactUnavailable where the GPUs are not known."""
    gpus = view.gpus.require()
    value = view.facts.variables.get(NAME)
    return gpus if value is None else parse_visible(value, gpus).gpus


def parse_visible(value: str, gpus: Sequence[Gpu]) -> Visible:
    """Read the variable as CUDA and torch do: all before the first entry that names no GPU."""
    if not value.strip():
        return Visible((), "it is empty")
    chosen: list[Gpu] = []
    seen: list[str] = []
    whole = value.split(",")
    kind = next((mark for mark in ("GPU-", "MIG-") if value.startswith(mark)), "")
    for entry in whole:
        if entry.strip() in seen:
            return Visible((), f"it names {entry.strip()} twice")
        gpu = _by_uuid(entry, kind, gpus) if kind else _by_number(entry, gpus)
        if gpu is None:
            return Visible(tuple(chosen), _stray(entry, kind, gpus))
        seen.append(entry.strip())
        chosen.append(gpu)
    return Visible(tuple(chosen))


def _by_number(entry: str, gpus: Sequence[Gpu]) -> Gpu | None:
    match = _ORDINAL.match(entry)
    number = int(match[1]) if match else -1
    return gpus[number] if 0 <= number < len(gpus) else None


def _by_uuid(entry: str, kind: str, gpus: Sequence[Gpu]) -> Gpu | None:
    """Return the GPU that a UUID, or enough of its beginning, names."""
    if not entry.startswith(kind):
        return None
    matching = [gpu for gpu in gpus if any(one.startswith(entry) for one in _uuids(gpu, entry))]
    return matching[0] if len(matching) == 1 else None


def _uuids(gpu: Gpu, entry: str) -> list[str]:
    parts = re.findall(r"\(UUID: ([^)]{1,100})\)", " ".join(gpu.mig_devices))
    if entry.startswith("MIG-GPU-"):  # as drivers before 470 name an instance: MIG-GPU-…/1/0
        return [f"MIG-{gpu.uuid}{entry[entry.find('/') :]}"] if gpu.uuid and "/" in entry else []
    return [gpu.uuid or "", *parts]


def _stray(entry: str, kind: str, gpus: Sequence[Gpu]) -> str:
    shown = entry.strip()[:60] or "an empty entry"
    if kind:
        return f"no GPU here is {shown}" if entry.startswith(kind) else f"{shown} is no {kind}… id"
    last = f"here are 0 to {len(gpus) - 1}" if len(gpus) > 1 else "here is 0 alone"
    return f"no GPU here has the number {shown} ({last})"


def check_hidden(view: View) -> Iterable[Finding]:
    """Tell GPUs that CUDA_VISIBLE_DEVICES hides from every CUDA program started here."""
    value = view.facts.variables.get(NAME)
    if value is None:
        raise Skip(f"{NAME} is not set")
    wished = _WISHED.fullmatch(value) is not None
    if not wished and view.facts.origin != "probe":
        raise Skip("which of a machine's GPUs a report tells is not known")
    if isinstance(view.gpus, Unknown) and not wished:
        raise Skip(view.gpus.reason)
    gpus = view.gpus.get() or ()
    if not gpus and not isinstance(view.gpus, Unknown):
        return
    if not wished and re.match(r"GPU-|MIG-|<", value) and not _told_by_uuid(value, gpus):
        raise Skip("the GPUs' UUIDs are not told")
    visible = Visible((), "it names none") if wished and value.strip() else parse_visible(value, gpus)
    if visible.why is not None and (not gpus or len(visible.gpus) < len(gpus)):
        yield _hidden(view, value, visible, gpus, wished)


def _told_by_uuid(value: str, gpus: Sequence[Gpu]) -> bool:
    """Whether UUIDs can be compared: a shared report has placeholders in their place."""
    return "<" not in value and all((gpu.uuid or "").startswith("GPU-") for gpu in gpus)


def _hidden(view: View, value: str, visible: Visible, gpus: Sequence[Gpu], wished: bool) -> Finding:
    hidden = [gpu for gpu in gpus if gpu not in visible.gpus]
    every = f"every GPU ({len(gpus)})" if gpus else "every GPU"
    whom = f"{len(hidden)} of {len(gpus)} GPUs" if visible.gpus else every
    seen = symptoms(view, *NO_DEVICES)
    mild = wished or bool(visible.gpus)
    everything = ",".join(str(gpu.index) for gpu in gpus) or "0"
    return Finding(
        id="GPU-HIDDEN-PART" if visible.gpus else "GPU-HIDDEN",
        severity=Severity.WARNING if mild else Severity.ERROR,
        summary=f"{NAME}={value[:80]} hides {whom} from CUDA programs: {visible.why}.",
        cause="CUDA shows a program only the devices listed before the first entry that names none; an empty "
        "list, or one that names a device twice, shows none.",
        evidence=(Evidence(NAME, value[:200] or "(empty)", "environment"), *_listed(gpus)),
        remedies=(
            Remedy("Let programs see every GPU.", ("unset CUDA_VISIBLE_DEVICES",)),
            Remedy(
                "Or name the GPUs that are meant.", commands("export CUDA_VISIBLE_DEVICES={}", everything)
            ),
        ),
        sources=(SOURCE,),
        explains=explained(seen),
        prior=0.95,
    )


def _listed(gpus: Iterable[Gpu]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(f"GPU {gpu.index}", " ".join(filter(None, (gpu.name, gpu.uuid))), gpu.source)
        for gpu in list(gpus)[:4]
    )


def check_order(view: View) -> Iterable[Finding]:
    """Numbers in CUDA_VISIBLE_DEVICES count another order than nvidia-smi's where the GPUs differ."""
    value = view.facts.variables.get(NAME, "")
    kinds = {gpu.name for gpu in view.gpus.require()}
    by_bus = view.facts.variables.get(ORDER, "").upper() == "PCI_BUS_ID"
    if (
        len(kinds) > 1
        and not by_bus
        and re.search(r"[0-9]", value)
        and not value.startswith(("GPU-", "MIG-"))
    ):
        yield Finding(
            id="GPU-ORDER",
            severity=Severity.NOTE,
            summary=f"{NAME}={value[:80]} counts the GPUs fastest first, nvidia-smi counts them by slot.",
            cause=f"The GPUs differ, and {ORDER} is not PCI_BUS_ID: the same number means another card.",
            evidence=_listed(view.gpus.require()),
            remedies=(Remedy("Count as nvidia-smi does.", ("export CUDA_DEVICE_ORDER=PCI_BUS_ID",)),),
            sources=(SOURCE,),
        )


def check_lost(view: View) -> Iterable[Finding]:
    """GPUs that the driver lists and cannot reach any more."""
    lost = [gpu for gpu in view.gpus.require() if gpu.name is None and "name" in gpu.unknown]
    for gpu in lost:
        yield Finding(
            id="GPU-LOST",
            severity=Severity.ERROR,
            summary=f"GPU {gpu.index} is there and does not answer: {gpu.unknown['name']}.",
            cause="It fell off the bus, hangs, or is closed to this user; CUDA often fails on all GPUs then.",
            evidence=(Evidence(f"GPU {gpu.index}", gpu.unknown["name"], gpu.source),),
            remedies=(
                Remedy("See what the kernel says of it.", ("sudo dmesg -T | grep -iE 'xid|nvrm' | tail",)),
                Remedy(
                    "Reset it, or reboot; take it out of service when it comes back.",
                    commands("sudo nvidia-smi --gpu-reset -i {}", gpu.index),
                ),
            ),
            sources=(LOST_SOURCE,),
        )


def check_reachable(view: View) -> Iterable[Finding]:
    """GPUs that the kernel lists, where nothing of NVIDIA's driver reaches this process."""
    gpus = view.gpus.require()
    if view.facts.origin != "probe" or not gpus:
        raise Skip("no GPU was probed")
    nvml = view.facts.driver.nvml
    if not (isinstance(nvml, Unknown) and "not found" in nvml.reason):
        return
    if not all(gpu.source.startswith("/sys/") for gpu in gpus):
        return
    container = view.facts.host.container.get()
    meant = view.torch_cuda.get() is not None
    bare = container in (None, "none")
    yield Finding(
        id="DRIVER-MISSING" if bare else "GPU-NOT-HANDED",
        severity=Severity.ERROR if meant else Severity.NOTE,
        summary="An NVIDIA GPU is in this machine, and no NVIDIA driver is installed."
        if bare
        else "The machine has an NVIDIA GPU, and this container was handed none.",
        cause="CUDA programs load libcuda.so.1, which comes with the driver; without it they see no device."
        if bare
        else "A container gets devices and the driver's libraries from NVIDIA's runtime, where it is asked.",
        evidence=(*_listed(gpus), Evidence("NVML", nvml.reason, "the loader's path")),
        remedies=_to_get_a_driver(view) if bare else _to_be_handed(container),
        sources=(DRIVER_SOURCE if bare else CONTAINER_SOURCE,),
        explains=explained(symptoms(view, *NO_DEVICES)),
        prior=0.95,
    )


def _to_get_a_driver(view: View) -> tuple[Remedy, ...]:
    from envdoctor.rules.system_packages import fitting_commands

    wanted = fitting_commands(view, ("sudo apt-get install nvidia-driver-580",))
    return (Remedy("Install NVIDIA's driver, and reboot.", wanted),)


def _to_be_handed(container: str | None) -> tuple[Remedy, ...]:
    if container == "kubernetes":
        return (Remedy("Ask for it in the pod's limits.", ("resources: {limits: {nvidia.com/gpu: 1}}",)),)
    if container == "singularity":
        return (Remedy("Ask for it.", ("apptainer exec --nv IMAGE COMMAND",)),)
    return (Remedy("Ask for it when the container is started.", ("docker run --gpus all …",)),)


def check_instances(view: View) -> Iterable[Finding]:
    """A GPU in MIG mode of which no instance was made shows CUDA nothing."""
    if view.facts.origin != "probe":
        raise Skip("no machine was probed")
    empty = [
        gpu
        for gpu in view.gpus.require()
        if (gpu.mig or "").lower() == "enabled" and not gpu.mig_devices and "mig" not in gpu.unknown
    ]
    if not empty:
        return
    numbers = ", ".join(str(gpu.index) for gpu in empty)
    them, one = ("them", "each") if len(empty) > 1 else ("it", "the card")
    yield Finding(
        id="GPU-MIG-EMPTY",
        severity=Severity.ERROR,
        summary=f"GPU {numbers} is in MIG mode and has no instance: CUDA sees no device on {them}.",
        cause="In MIG mode only instances compute, and none was made, or none is open to this user.",
        evidence=tuple(Evidence(f"GPU {gpu.index} mig", gpu.mig or "", gpu.source) for gpu in empty[:4]),
        remedies=(
            Remedy(
                f"Make an instance with all of {one}.",
                commands("sudo nvidia-smi mig -i {} -cgi 0 -C", numbers.replace(" ", "")),
            ),
            Remedy("Or leave MIG mode.", commands("sudo nvidia-smi -i {} -mig 0", numbers.replace(" ", ""))),
        ),
        certainty=Certainty.LIKELY,
        sources=(MIG_SOURCE,),
    )


RULES = (
    Rule("GPU-HIDDEN", "CUDA_VISIBLE_DEVICES hides no GPU by mistake", check_hidden, SOURCE),
    Rule("GPU-ORDER", "GPUs are counted in one order", check_order, SOURCE),
    Rule("GPU-LOST", "Every GPU answers", check_lost, LOST_SOURCE),
    Rule("GPU-REACHABLE", "A driver reaches the GPUs of this machine", check_reachable, DRIVER_SOURCE),
    Rule("GPU-MIG-EMPTY", "A GPU in MIG mode has an instance", check_instances, MIG_SOURCE),
)
