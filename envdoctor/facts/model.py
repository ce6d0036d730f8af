"""What was observed of a machine and its environment, before any judgement."""

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Literal

from envdoctor.facts.names import DistributionName, Line, OpName, Word
from envdoctor.facts.observed import NOT_TOLD, ComputeCapability, CudaVersion, DriverVersion, Fact
from envdoctor.values import dataclass

SCHEMA = "envdoctor.facts/1"
EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. A field that is None is unknown; `unknown` says why where the probe could tell."""

    index: int
    source: str
    name: str | None = None
    uuid: str | None = None
    compute_capability: ComputeCapability | None = None
    memory_total_bytes: int | None = None
    memory_free_bytes: int | None = None
    pci_id: str | None = None
    pci_bus: str | None = None
    serial: str | None = None
    mig: str | None = None
    mig_devices: tuple[str, ...] = ()
    ecc: str | None = None
    ecc_uncorrected: int | None = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failed: bool | None = None
    persistence: bool | None = None
    compute_mode: str | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    nvlinks_up: int | None = None
    nvlinks_total: int | None = None
    throttle_reasons: tuple[str, ...] = ()
    power_limit_mw: int | None = None
    power_limit_default_mw: int | None = None
    temperature_c: int | None = None
    temperature_slowdown_c: int | None = None
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    memory_clock_mhz: int | None = None
    memory_clock_max_mhz: int | None = None
    vbios: str | None = None
    processes: tuple[Mapping[str, Any], ...] = ()
    unknown: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True)
class Xid:
    """An NVIDIA error the kernel logged: its number, the PCI bus and the line."""

    number: int
    pci_bus: str
    text: str


@dataclass(frozen=True, slots=True)
class Driver:
    """NVIDIA's driver: the kernel module's version, the user libraries' version, and what CUDA it allows."""

    version: Fact[DriverVersion] = NOT_TOLD
    user_version: Fact[DriverVersion] = NOT_TOLD
    cuda: Fact[CudaVersion] = NOT_TOLD
    module: Fact[str] = NOT_TOLD
    """`open` or `proprietary`."""
    fabric_manager: Fact[str] = NOT_TOLD
    """`running`, `stopped` or `absent`."""
    nvml: Fact[str] = NOT_TOLD
    """`ok`, or the error NVML answered with."""
    xids: tuple[Xid, ...] = ()


@dataclass(frozen=True, slots=True)
class Mount:
    """A file system that other machines share. Free bytes None: it did not answer in time."""

    kind: str
    server: str
    """Whose it is, and its path there."""
    writable: bool
    total_bytes: int | None = None
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """A port of an InfiniBand or RoCE adapter, as the kernel's verbs list it."""

    device: str
    port: int
    link: str
    """`InfiniBand` or `Ethernet`."""
    state: str
    """`ACTIVE`, `INIT`, `DOWN`, …"""
    physical_state: str | None = None
    rate_gbps: float | None = None
    firmware: str | None = None
    gids: int | None = None
    """How many addresses it has."""
    subnet: str | None = None
    """The first half of its first address: ports that differ in it do not reach each other."""


@dataclass(frozen=True, slots=True)
class Host:
    """The machine around the GPUs. Sizes in bytes."""

    os: Fact[str] = NOT_TOLD
    """`linux`, `windows` or `macos`."""
    distro: Fact[str] = NOT_TOLD
    kernel: Fact[str] = NOT_TOLD
    arch: Fact[str] = NOT_TOLD
    """`x86_64` or `aarch64`."""
    glibc: Fact[str] = NOT_TOLD
    wsl: Fact[bool] = NOT_TOLD
    container: Fact[str] = NOT_TOLD
    """`docker`, `kubernetes`, `podman`, `singularity`, an image's name, or `none`."""
    hostname: Fact[str] = NOT_TOLD
    cpu_count: Fact[int] = NOT_TOLD
    memory_total_bytes: Fact[int] = NOT_TOLD
    memory_available_bytes: Fact[int] = NOT_TOLD
    cgroup_limit_bytes: Fact[int] = NOT_TOLD
    shm_bytes: Fact[int] = NOT_TOLD
    disk_free_bytes: Mapping[str, int] = field(default_factory=lambda: EMPTY)
    """Free bytes by place (`hf_cache`, `torch_cache`, `tmp`, `prefix`)."""
    product: Fact[str] = NOT_TOLD
    """The machine's model as its firmware tells it."""
    memory_modules: Fact[int] = NOT_TOLD
    """DIMMs that the memory controllers see."""
    numa_nodes: Fact[int] = NOT_TOLD
    governor: Fact[str] = NOT_TOLD
    """How the kernel chooses the cores' clocks: `performance`, `powersave`, …"""
    locale: Fact[str] = NOT_TOLD
    clock: Fact[str] = NOT_TOLD
    """`synchronised`, or `not synchronised` with a time server."""
    time_s: Fact[int] = NOT_TOLD
    """The machine's own time when it was read, in seconds since 1970."""
    limits: Mapping[str, int] = field(default_factory=lambda: EMPTY)
    """Soft limits of a process (`nofile`, `memlock`, `nproc`, `stack`, `core`); -1 is none."""
    modules: Fact[tuple[str, ...]] = NOT_TOLD
    """Kernel modules of GPUs' and fabrics' direct access that are loaded."""
    mounts: Mapping[str, Mount] = field(default_factory=lambda: EMPTY)
    """File systems that several machines share, by where they are mounted."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """A CUDA toolkit on disk (nvcc, headers), not the driver's and not torch's own CUDA."""

    version: CudaVersion
    path: str
    source: str
    active: bool = False
    """True for the one that `nvcc` on PATH or CUDA_HOME leads to."""


@dataclass(frozen=True, slots=True)
class NativeLibrary:
    """A copy of cudart, cuDNN, NCCL, nvJitLink, cuSPARSE… found on this machine."""

    name: str
    path: str
    origin: str
    """`wheel`, `LD_LIBRARY_PATH`, `ldconfig` or `toolkit`."""
    version: str | None = None
    cuda_major: int | None = None
    wins: bool = False
    """True for the copy that would be loaded."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed (or required) Python distribution. `version` None: only `specifier` is known of it."""

    name: DistributionName
    source: str
    version: str | None = None
    specifier: str = ""
    location: str | None = None
    installer: str | None = None
    editable: bool = False
    origin: str | None = None
    """Where it was installed from when not an index: a URL's kind (`vcs`, `file`, `url`), or `conda`."""
    requires: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """Its version, else what is told in its place: `2.2` of `==2.2.*`, else the range."""
        return self.version or self.specifier.removeprefix("==").removesuffix(".*")

    @property
    def begun(self) -> str | None:
        """The beginning of its version where no more is told: `2.2` of `==2.2.*`."""
        return self.told if self.version is None and f"=={self.told}.*" == self.specifier else None


@dataclass(frozen=True, slots=True)
class Environment:
    """The examined interpreter and what is installed for it."""

    python: Fact[Line] = NOT_TOLD
    executable: Fact[Line] = NOT_TOLD
    prefix: Fact[Line] = NOT_TOLD
    kind: Fact[Word] = NOT_TOLD
    """`venv`, `conda` or `system`."""
    distributions: Mapping[DistributionName, Distribution] = field(default_factory=lambda: EMPTY)
    """By normalized name."""
    complete: bool = False
    """True when `distributions` is all there is, so that absence means not installed."""
    builds: Mapping[DistributionName, Mapping[str, Any]] = field(default_factory=lambda: EMPTY)
    """Build facts by distribution: torch's `cuda`, `arch_list`, `cxx11_abi`; bitsandbytes' `binaries`; …"""
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a training or serving run, under its common key (`zero_stage`, `batch`, `model`)."""

    key: str
    value: str
    source: str
    native_key: str | None = None
    framework: str | None = None


@dataclass(frozen=True, slots=True)
class Symptom:
    """An error line recognised in a paste: which signature, the line, and what its pattern captured."""

    id: str
    text: str
    source: str
    captured: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True)
class Frame:
    """One step of a traceback as printed; `line` is 0 where none is shown."""

    file: str
    line: int
    function: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class ErrorSeen:
    """An error that a paste shows: an exception with its traceback, or a line that tells a fault.

    Of chained exceptions it is the root; `ended` is then the last one's line.
    """

    text: str
    source: str
    kind: str = "exception"
    """`exception`, `cut` (its last line is missing), `line` (a fault, no exception), `logged` (a logger
    called it an error) or `said` (a person tells of trouble)."""
    exception: str = ""
    """The class as printed, perhaps with its module."""
    line: int = 0
    """The line it stands on, from 1."""
    frames: tuple[Frame, ...] = ()
    """Outermost first."""
    ended: str = ""
    symptoms: tuple[str, ...] = ()
    """The signatures recognised within it."""
    beside: str = ""
    """What stands before it on its line, outside of a traceback."""


@dataclass(frozen=True, slots=True)
class WarningSeen:
    """A line that reads like a program's warning, without its level, place and time."""

    text: str
    source: str
    file: str = ""
    """The Python file that warns, where the line names it."""
    logged: bool = False
    """True where a level or a class stands before it; False where its words alone read like a warning."""


@dataclass(frozen=True, slots=True)
class Speed:
    """A measured speed, and how it stands to what such cards reach; `unknown` until it was judged."""

    figure: float
    unit: str
    cards: tuple[str, ...] = ()
    """The names of the cards that took part."""
    links: int | None = None
    """NVLinks of each of them to the others; 0 for none, None where it is not told."""
    seen: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """What nvidia-smi showed of the card meanwhile, by its names of fields; `others`: who else was there."""
    verdict: Literal["pass", "slow", "unknown"] = "unknown"
    expected: float | None = None
    least: float | None = None
    """Below this it is slow."""
    causes: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a smoke kernel found."""

    op: OpName
    outcome: Word
    source: str
    reason: str | None = None
    speed: Speed | None = None

    @property
    def name(self) -> str:
        """The op without the cards that it ran on."""
        return self.op.partition("@")[0].partition("[")[0]


WISH = "the text asks for a feature or describes a change: what it quotes is an example, not what happened"
"""A note of the reader: findings about such a text are no more than hints."""
MENDED = "the text tells that what failed was mended: the errors before that are told as history"
"""A note of the reader: what explains such an error is worth knowing and nothing to act on."""
NOT_JUDGED = "running text, of which no more than facts is read: "
"""How the reader's note begins that quotes a sentence; its place and its words follow."""
ASKED = "the text asks a question: the error that it quotes in passing is no log of a run"
"""A note of the reader: what accounts for such an error is no more than likely."""
REPORTED = "a person reports that something failed"
"""A note of the reader: words tell of a failure that happened, in a text without an error line."""
STOPPED = "KeyboardInterrupt"
"""The exception by which a person ends a run."""
CONTRADICTED = ": two versions, "
"""What stands behind a distribution's name in the reader's note that two versions of it are told."""
TOLD_CAUSE = "the text itself tells of a cause: "
"""How the reader's note begins that quotes a sentence which names a cause; its place and its words follow."""
TOLD_WAY = "the text itself tells of a way out: "
"""How the reader's note begins that quotes a sentence which names what helped or would."""
INSTALLING = "an installer was asked for: "
"""How the reader's note begins that tells what commands of installers named; the names follow."""
IN_WORDS = "in words"
"""The capture of a symptom whose line no one quotes: which row reads the words by which it is told."""
MOOD = "told of"
"""The capture of a symptom whose line no program printed: `told` in a sentence, or `supposed`."""
APART = ("apart", "held_size", "built_size", "times")
"""The captures that two sizes of one weight (`held` by a file, `built` by a program) lead to."""
NOTHING_READ = (
    "nothing in it was recognised (readable are tracebacks, logs, pip list or freeze, nvidia-smi, collect_env"
    " and settings files)"
)
"""Why a text is unread that tells nothing, unless a warning in it is known."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All observations of one machine: what a probe writes, a paste tells and a bundle holds."""

    origin: str = "declared"
    """`probe`, `paste` or `declared`."""
    driver: Driver = field(default_factory=Driver)
    gpus: Fact[tuple[Gpu, ...]] = NOT_TOLD
    host: Host = field(default_factory=Host)
    ports: Fact[tuple[Port, ...]] = NOT_TOLD
    toolkits: Fact[tuple[Toolkit, ...]] = NOT_TOLD
    libraries: tuple[NativeLibrary, ...] = ()
    environment: Environment = field(default_factory=Environment)
    variables: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    astray: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """What is wrong with the place or device that a variable names, by variable."""
    settings: tuple[Setting, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    errors: tuple[ErrorSeen, ...] = ()
    """In the order of the text; the last that is no consequence decides."""
    warnings: tuple[WarningSeen, ...] = ()
    """Of a text that shows no error."""
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks of the reader: contradictions, what was passed over."""
    unread: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Texts, or parts of a probed machine, that gave no answer or not a whole one, each with the reason."""

    def distribution(self, name: str) -> Distribution | None:
        """Return the distribution of that normalized name, or None."""
        return self.environment.distributions.get(name)

    def setting(self, key: str) -> Setting | None:
        """Return the last setting of that key, or None."""
        return next((s for s in reversed(self.settings) if s.key == key), None)
