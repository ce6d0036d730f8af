"""The language of a row's `when`: keys over facts, judged true, false or unknown, with evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.facts import CudaVersion, DriverVersion, Fact, Gpu, Observed
from envdoctor.facts.quantities import GIB
from envdoctor.findings import Evidence
from envdoctor.patterns import glob_matches
from envdoctor.rules.ranges import (
    number_satisfies,
    parse_version,
    range_satisfies,
    text_matches,
    version_satisfies,
)
from envdoctor.rules.view import View
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a condition holds (None: unknown), and the evidence when it is known."""

    holds: bool | None
    evidence: tuple[Evidence, ...] = ()

    @property
    def denied(self) -> Answer:
        """The answer to the opposite."""
        return Answer(None if self.holds is None else not self.holds, self.evidence)


_BILLIONS = re.compile(r"(?<![\w.])(?:[\w./]{0,120}[-_/])?(\d{1,3}(?:\.\d{1,2})?)[bB]\b")
_PACKED = 0.6
"""Bytes that a parameter takes in 4 bit, scales and what stays in 16 bit counted in."""
_TRAINED = 16
"""Bytes that a parameter takes while all are trained: weights and gradients in 16 bit, AdamW's three in 32.

https://arxiv.org/abs/1910.02054, section 3.1
"""
UNKNOWN = Answer(None)


def judge_all(view: View, when: Mapping[str, str]) -> dict[str, Answer]:
    """Judge each condition of a `when`."""
    return {key: judge(view, key, text) for key, text in when.items()}


def conjunction(answers: Iterable[Answer]) -> bool | None:
    """Kleene's and: False if any is false, else None if any is unknown, else True."""
    verdict: bool | None = True
    for answer in answers:
        if answer.holds is False:
            return False
        if answer.holds is None:
            verdict = None
    return verdict


def any_holds(answers: Iterable[Answer]) -> bool:
    """True when at least one is known to hold."""
    return any(answer.holds is True for answer in answers)


def judge(view: View, key: str, text: str) -> Answer:
    """Judge one condition; raises ValueError for a key that nobody knows."""
    if key in _ATOMS:
        return _ATOMS[key](view, text)
    prefix, dot, rest = key.partition(".")
    if dot and prefix in _PREFIXED:
        return _PREFIXED[prefix](view, rest, text)
    return _judge_distribution(view, key, text)


def is_distribution(key: str) -> bool:
    """True for a condition on a package's release."""
    return key not in _ATOMS and key.partition(".")[0] not in _PREFIXED


def _judge_distribution(view: View, name: str, text: str) -> Answer:
    distribution = view.facts.distribution(name)
    if distribution is None:
        if view.installed(name) is None:
            return UNKNOWN
        return Answer(text == "absent", (Evidence(name, "not installed", "the whole list"),))
    if text == "absent":
        return Answer(False)
    shown = Evidence(name, distribution.told or "installed", distribution.source)
    if text == "*":
        return Answer(True, (shown,))
    version = parse_version(distribution.version) if distribution.version else None
    if version is not None:
        return Answer(version_satisfies(version, text), (shown,))
    if distribution.specifier:
        return Answer(range_satisfies(distribution.specifier, text), (shown,))
    return UNKNOWN


def _judge_setting(view: View, key: str, text: str) -> Answer:
    setting = next((s for s in reversed(view.facts.settings) if glob_matches(s.key, key)), None)
    if setting is None:
        return Answer(False) if text == "*" else UNKNOWN
    shown = Evidence(setting.native_key or key, setting.value, setting.source)
    holds = number_satisfies(setting.value, text)
    return Answer(text_matches(setting.value, text) if holds is None else holds, (shown,))


def _judge_variable(view: View, name: str, text: str) -> Answer:
    value = view.facts.variables.get(name)
    if value is None:
        return Answer(text == "absent") if view.facts.origin == "probe" else UNKNOWN
    return Answer(text_matches(value, text), (Evidence(name, value, "environment"),))


def _judge_astray(view: View, name: str, text: str) -> Answer:
    """Whether a variable names a place that is not what it should be."""
    why = view.facts.astray.get(name)
    if why is None:
        return Answer(False) if view.facts.origin == "probe" else UNKNOWN
    shown = f"{view.facts.variables.get(name, '')}: {why}"
    return Answer(text_matches(why, text), (Evidence(name, shown, "environment"),))


def _judge_build(view: View, path: str, text: str) -> Answer:
    name, _, field = path.rpartition(".")
    build = view.torch_build if name == "torch" else view.facts.environment.builds.get(name, {})
    if field not in build:
        return UNKNOWN
    value = build[field]
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return Answer(text_matches(shown, text), (Evidence(path, shown, f"{name}'s files"),))


def _judge_captured(view: View, group: str, text: str) -> Answer:
    """True when some recognised error line captured a matching text under that name."""
    for symptom in view.facts.symptoms:
        value = symptom.captured.get(group)
        if value is not None and text_matches(value, text):
            return Answer(True, (Evidence(symptom.id, value, symptom.source),))
    return Answer(text == "absent" and not any(group in symptom.captured for symptom in view.facts.symptoms))


def _judge_verdict(view: View, op: str, text: str) -> Answer:
    for verdict in view.facts.verdicts:
        if glob_matches(verdict.op, op):
            return Answer(
                text_matches(verdict.outcome, text), (Evidence(verdict.op, verdict.outcome, verdict.source),)
            )
    return UNKNOWN


def _version_atom(name: str, read: Callable[[View], Fact[str]]) -> Callable[[View, str], Answer]:
    def judged(view: View, text: str) -> Answer:
        fact = read(view)
        if not isinstance(fact, Observed):
            return UNKNOWN
        shown = (Evidence(name, fact.value, fact.source),)
        if text == "*":
            return Answer(True, shown)
        version = parse_version(fact.value)
        if version is not None:
            return Answer(version_satisfies(version, text), shown)
        try:
            return Answer(range_satisfies(fact.value, text), shown)
        except ValueError:
            return UNKNOWN

    return judged


def _text_atom(name: str, read: Callable[[View], Fact[str]]) -> Callable[[View, str], Answer]:
    def judged(view: View, text: str) -> Answer:
        fact = read(view)
        if not isinstance(fact, Observed):
            return UNKNOWN
        return Answer(text_matches(fact.value, text), (Evidence(name, fact.value, fact.source),))

    return judged


def _stringed(fact: Fact[DriverVersion] | Fact[CudaVersion]) -> Fact[str]:
    return Observed(str(fact.value), fact.source) if isinstance(fact, Observed) else fact


def _size_atom(name: str, read: Callable[[View], Fact[int]]) -> Callable[[View, str], Answer]:
    def judged(view: View, text: str) -> Answer:
        fact = read(view)
        if not isinstance(fact, Observed):
            return UNKNOWN
        size = f"{fact.value / GIB:.2f}"
        return Answer(text == "*" or number_satisfies(size, text), (Evidence(name, size, fact.source),))

    return judged


def _judge_capability(view: View, text: str) -> Answer:
    """True when any GPU's compute capability meets the condition, so that a mixed machine is judged whole."""
    gpus = view.gpus.get()
    if gpus is None:
        return UNKNOWN
    known = [gpu for gpu in gpus if gpu.compute_capability]
    for gpu in known:
        if version_satisfies(Version(str(gpu.compute_capability)), text):
            value = f"{gpu.name or 'GPU'} (compute capability {gpu.compute_capability})"
            return Answer(True, (Evidence("gpu", value, gpu.source),))
    return Answer(False) if known and len(known) == len(gpus) else UNKNOWN


def _judge_memory(view: View, text: str) -> Answer:
    known = [gpu for gpu in view.gpus.get() or () if gpu.memory_total_bytes]
    if not known:
        return UNKNOWN
    smallest = min(known, key=lambda gpu: gpu.memory_total_bytes or 0)
    size = f"{(smallest.memory_total_bytes or 0) / GIB:.2f}"
    evidence = Evidence("gpu memory", f"{size} GiB ({smallest.name or 'GPU'})", smallest.source)
    return Answer(text == "*" or number_satisfies(size, text), (evidence,))


def _judge_weights(view: View, text: str) -> Answer:
    """What the weights of the model that is told take by themselves, by the billions in its name."""
    setting = view.facts.setting("model")
    words = [(setting.value, setting.source)] if setting else []
    words += [(error.text, error.source) for error in view.facts.errors if error.kind == "said"]
    for told, source in words:
        if match := _BILLIONS.search(told):
            size = float(match[1])
            whole, packed, trained = (size * 1e9 * each / GIB for each in (2, _PACKED, _TRAINED))
            said = (
                f"{match[1]}B take about {whole:.0f} GiB in 16 bit, {packed:.0f} in 4 bit; trained in full"
                f" with AdamW in mixed precision {trained:.0f}, activations aside"
            )
            return Answer(True, (Evidence("model", said, source),))
    return UNKNOWN


def _judge_gpu_count(view: View, text: str) -> Answer:
    """Judge how many cards there are; one that a person merely names may be one of several."""
    gpus = view.gpus
    if not isinstance(gpus, Observed):
        return UNKNOWN
    count = len(gpus.value)
    holds = version_satisfies(Version(str(count)), text)
    if holds and count == 1 and view.facts.origin == "paste" and not _is_listed(gpus.value[0]):
        return UNKNOWN
    return Answer(holds, (Evidence("GPUs", str(count), gpus.source),))


def _is_listed(gpu: Gpu) -> bool:
    """True for a card that a tool shows, and not its name alone."""
    return any((gpu.uuid, gpu.pci_bus, gpu.memory_free_bytes, gpu.power_limit_mw, gpu.temperature_c))


def _judge_gpu_name(view: View, text: str) -> Answer:
    gpus = [gpu for gpu in view.gpus.get() or () if gpu.name]
    for gpu in gpus:
        if text_matches(gpu.name or "", text):
            return Answer(True, (Evidence("gpu", gpu.name or "", gpu.source),))
    return Answer(False) if gpus else UNKNOWN


def _judge_torch_cuda(view: View, text: str) -> Answer:
    fact = view.torch_cuda
    if isinstance(fact, Observed):
        shown = (Evidence("torch's CUDA", str(fact.value), fact.source),)
        if text in ("*", "cpu"):
            return Answer(text == "*", shown)
        return Answer(version_satisfies(Version(str(fact.value)), text), shown)
    if view.torch_build.get("variant") == "cpu":
        source = torch.source if (torch := view.facts.distribution("torch")) else "torch"
        return Answer(text == "cpu", (Evidence("torch's build", "CPU only", source),))
    return UNKNOWN


def _judge_engine(view: View, text: str) -> Answer:
    """Whose server or trainer the settings are given to; unknown where none is named."""
    named = next((s for s in reversed(view.facts.settings) if s.framework), None)
    if named is None or not named.framework:
        return UNKNOWN
    return Answer(text_matches(named.framework, text), (Evidence("engine", named.framework, named.source),))


def _judge_toolkit(view: View, text: str) -> Answer:
    toolkits = view.facts.toolkits
    if not isinstance(toolkits, Observed):
        return UNKNOWN
    active = [t for t in toolkits.value if t.active] or list(toolkits.value)
    if not active:
        return Answer(text == "absent", (Evidence("CUDA toolkit", "none found", toolkits.source),))
    if text == "absent":
        return Answer(False)
    evidence = (Evidence("CUDA toolkit (nvcc)", str(active[0].version), active[0].source),)
    return Answer(text == "*" or version_satisfies(Version(str(active[0].version)), text), evidence)


def _judge_bool(name: str, read: Callable[[View], Fact[bool]]) -> Callable[[View, str], Answer]:
    return _text_atom(name, lambda view: _lowered(read(view)))


def _lowered(fact: Fact[bool]) -> Fact[str]:
    return Observed(str(fact.value).lower(), fact.source) if isinstance(fact, Observed) else fact


_ATOMS: Mapping[str, Callable[[View, str], Answer]] = {
    "python": _version_atom("Python", lambda view: view.facts.environment.python),
    "glibc": _version_atom("glibc", lambda view: view.facts.host.glibc),
    "driver": _version_atom("driver", lambda view: _stringed(view.facts.driver.version)),
    "driver.cuda": _version_atom("driver's highest CUDA", lambda view: _stringed(view.facts.driver.cuda)),
    "driver.module": _text_atom("kernel module", lambda view: view.facts.driver.module),
    "fabric_manager": _text_atom("fabric manager", lambda view: view.facts.driver.fabric_manager),
    "nvml": _text_atom("NVML", lambda view: view.facts.driver.nvml),
    "os": _text_atom("operating system", lambda view: view.facts.host.os),
    "distro": _text_atom("distribution", lambda view: view.facts.host.distro),
    "arch": _text_atom("architecture", lambda view: view.facts.host.arch),
    "container": _text_atom("container", lambda view: view.facts.host.container),
    "wsl": _judge_bool("WSL", lambda view: view.facts.host.wsl),
    "environment.kind": _text_atom("environment", lambda view: view.facts.environment.kind),
    "shm_gib": _size_atom("/dev/shm in GiB", lambda view: view.facts.host.shm_bytes),
    "host_memory_gib": _size_atom("host memory in GiB", lambda view: view.facts.host.memory_total_bytes),
    "gpu.cc": _judge_capability,
    "gpu.memory_gib": _judge_memory,
    "model.weights": _judge_weights,
    "gpu.count": _judge_gpu_count,
    "gpu.name": _judge_gpu_name,
    "torch.cuda": _judge_torch_cuda,
    "toolkit": _judge_toolkit,
    "engine": _judge_engine,
}

_PREFIXED: Mapping[str, Callable[[View, str, str], Answer]] = {
    "setting": _judge_setting,
    "env": _judge_variable,
    "astray": _judge_astray,
    "build": _judge_build,
    "sym": _judge_captured,
    "smoke": _judge_verdict,
}
