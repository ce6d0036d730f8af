"""Rows of what texts are searched for: error lines, keys that stand for common settings, names of cards."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar, Literal

from envdoctor.facts import ComputeCapability
from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import (
    Bound,
    Capability,
    Package,
    Row,
    SettingName,
    SymptomGlob,
    Text,
    fact,
)

Needle = Annotated[str, forms.NEEDLE]


@fact
class SymptomRow(Row):
    """An error line by its signature."""

    KIND: ClassVar = "symptom"

    pattern: Annotated[str, forms.REGEX]
    """The signature; its named groups are captured."""
    title: Text
    """What the line means."""
    tells: Annotated[Mapping[str, str], forms.TELLS] = field(default_factory=dict)
    """Facts that captures tell."""
    needle: Needle | tuple[Needle, ...] = ()
    """Words of which one is in every such line, where the pattern has none that are rare (`needles_of`)."""
    wrapped: bool = False
    """True when the pattern may run over into the next lines (re-laid tracebacks, tables)."""
    fault: Literal["", "line", "logged", "said"] = ""
    """How the line tells by itself that something failed, whatever it was: see `ErrorSeen.kind`."""

    notice: bool = False
    """True where the line reads like a refusal, and what prints it goes on."""
    informs: bool = False
    """True where the line tells a fact and is no sign that something failed."""

    @property
    def needles(self) -> tuple[str, ...]:
        """Words of which one is in every such line: the pattern is tried where one stands."""
        return (self.needle,) if isinstance(self.needle, str) else self.needle

    def problem(self) -> str | None:
        """Return what is wrong with the row: a pattern that would be tried nowhere."""
        from envdoctor.matrix.needles import needles_of

        told = self.needle or needles_of(self.pattern, self.wrapped)
        return None if told else "no telling words stand in whatever the pattern matches: name a needle"


@fact
class TellingRow(Row):
    """How people tell in their own words what an error line says."""

    KIND: ClassVar = "telling"

    symptom: SymptomGlob
    """The line that is told."""
    words: tuple[tuple[Needle, ...], ...]
    """Lists of words: of each list one stands in the paragraph, at the beginning of a word."""
    beside: tuple[Needle, ...] = ()
    """Words of which one stands anywhere in the text: the paragraph alone does not tell of what it is."""
    captured: Mapping[str, str] = field(default_factory=dict)
    """What the line would capture, where the words leave no doubt of it."""


@fact
class ConsequenceRow(Row):
    """An error that only reports that something else failed."""

    KIND: ClassVar = "consequence"

    needles: tuple[Needle, ...]
    """Words of which one is in its line."""
    reports: Text
    """What it reports."""
    ways: tuple[Text, ...] = ()
    """What brings the error that it reports to light, the best first."""


@fact
class PlaceRow(Row):
    """Functions in which a traceback that is cut off may end, and what usually fails there."""

    KIND: ClassVar = "place"

    packages: tuple[Text, ...] = ()
    """Top modules of which one is in the file's path; without any the function alone decides."""
    functions: tuple[Text, ...]
    """Names of the functions."""
    files: tuple[Text, ...] = ()
    """Ends of the file's path of which one must be there."""
    during: Text
    """What was done there, to stand after `it fell while`."""
    usual: Text
    """What usually fails."""
    remedies: tuple[Text, ...]
    """What to look at or change, the best first."""


Stage = Literal["import", "device", "model", "kernel"]
"""What a run comes to one after the other: its packages are imported, the device answers, the model is built
and loaded, kernels compute."""


@fact
class ReachedRow(Row):
    """What shows that a run had come to a stage: a line that it then prints, a function that it then runs."""

    KIND: ClassVar = "reached"

    stage: Stage
    """The stage that lay behind it."""
    symptoms: tuple[SymptomGlob, ...] = ()
    """Lines of which one shows it."""
    functions: tuple[Text, ...] = ()
    """Functions of which one stands in a traceback."""
    package: Package | None = None
    """Whose line or function it is; without one any package's."""
    past: tuple[Text, ...] = ()
    """Ids of findings, or globs: lines of theirs that stand above one of its lines did not end the run."""
    ends: bool = False
    """Its lines tell the results of a whole run: what stands above them in a log ended nothing."""


@fact
class ShownRow(Row):
    """When a defect that versions, cards or settings alone tell of would show, and by what errors."""

    KIND: ClassVar = "shown"

    findings: tuple[Text, ...]
    """Ids of the findings, or globs."""
    shows: Stage
    """The stage at which a run with the defect ends."""
    errors: tuple[Needle, ...]
    """Words of which one is in an error that it leads to."""
    named: bool = False
    """True where such an error, or its traceback, names one of the packages that the finding is about."""
    asks: bool = False
    """True where the first package of the evidence asks for the others: it alone shows the defect."""
    declared: bool = False
    """True where files declare it: it holds whatever ended the run, and is a warning beside another error."""


@fact
class DetourRow(Row):
    """A part that a program can do without, and how: for errors raised in it that nothing explains."""

    KIND: ClassVar = "detour"

    part: Text
    """What fails, to stand before `fails here`."""
    paths: tuple[Text, ...] = ()
    """Parts of a traceback's paths of which one shows that the error was raised in it."""
    functions: tuple[Text, ...] = ()
    """Functions in a traceback of which one shows the same."""
    needles: tuple[Needle, ...] = ()
    """Words of the error, in lower case, of which one shows the same."""
    programs: tuple[Annotated[str, forms.NAME], ...] = ()
    """Packages of which one must be told or run through; without any it holds for all."""
    ways: tuple[Text, ...]
    """How to do without it, the best first."""


@fact
class OptionRow(Row):
    """One thing that programs can be told, and what each of them calls it."""

    KIND: ClassVar = "option"

    means: Text
    """What it sets."""
    names: Mapping[str, str]
    """What the program calls it, as it is written, and after blanks what else people call it there."""


@fact
class ProgramRow(Row):
    """A program whose parser refuses options, where its name is not what that parser calls itself."""

    KIND: ClassVar = "program"

    name: Text
    """As people and `OptionRow.names` call it."""
    parsers: tuple[Text, ...] = ()
    """What its parsers call themselves."""
    refusals: tuple[SymptomGlob, ...] = ()
    """Lines that only its parsers print, who name no program."""
    help: Text
    """The command that shows its options."""


@fact
class SayingRow(Row):
    """A wording by which error messages of any library tell what they lack, refuse or ask for."""

    KIND: ClassVar = "saying"

    needle: tuple[Needle, ...]
    """Words of which one is in every such message; they make the search fast."""
    pattern: Annotated[str, forms.REGEX]
    """The wording; its named groups fill the sentences."""
    title: Text
    """What it means, in a few words."""
    cause: tuple[Text, ...]
    """What it says in plain words; a sentence is told where all its `{groups}` are captured."""
    remedies: tuple[Text, ...] = ()
    """What follows from it, likewise."""
    reads: Literal["", "package", "card", "multiple", "choice", "lacking"] = ""
    """What is made of the captured parts beyond quoting them."""
    always: bool = False
    """True for a sentence that means the same where a rule knows its line and cannot explain it."""


Framework = Literal[
    "transformers", "trl", "peft", "bitsandbytes", "accelerate", "deepspeed", "vllm", "llamafactory",
    "ms-swift", "axolotl", "unsloth", "weclone", "torchrun", "sglang", "lmdeploy",
]  # fmt: skip


@fact
class FrameworkRow(Row):
    """A program or library that trains or serves."""

    KIND: ClassVar = "framework"

    name: Framework
    """Its distribution."""
    role: Literal["trainer", "engine", "library", "aside"]
    """A trainer is installed to be run alone; engines and libraries stand in many environments unused; of
    what stands aside no settings are judged."""
    quick: bool = False
    """True where it changes so fast that what is wrong is mostly tried with its newest release."""
    bases: tuple[Framework, ...] = ()
    """Frameworks whose settings classes its own inherit."""
    signature: tuple[Text, ...] = ()
    """Keys of which two tell that a file is written for it."""
    strict: bool = False
    """True where its parser stops at an unknown key; others pass over it in silence."""
    closed: bool = False
    """True where all of its keys are known, so that any other is a mistake."""
    loose_sections: bool = False
    """True where it hands sections on as they stand: what reads them may take more than is declared."""
    scripts: bool = False
    """True where scripts read its files, which add classes of settings of their own."""
    refusals: tuple[SymptomGlob, ...] = ()
    """Lines in which its parsers refuse arguments."""
    parser: str = ""
    """What its parser calls itself, where that is not its name."""
    dashed: bool = False
    """True where its options are written with dashes."""
    registers: bool = False
    """True where it brings configs of models ahead of transformers."""
    length: int | None = None
    """What it takes for the length when its file is silent, in tokens."""
    checkpoints: bool = False
    """True where it checkpoints activations when its settings are silent."""
    command: Annotated[str, forms.REGEX] | None = None
    """How a line starts it; a group `model` is what it runs."""
    words: tuple[Needle, ...] = ()
    """Words of which one is in each such line."""
    serves: bool = False
    """True where such a command serves."""
    programs: tuple[Text, ...] = ()
    """Programs that it installs, by name."""
    module: str = ""
    """What scripts import that train by its trainers."""
    launches: tuple[Text, ...] = ()
    """Words of which one is in a command whose options are its settings."""


@fact
class PackageNameRow(Row):
    """A package whose name, followed by a version, is read from running text."""

    KIND: ClassVar = "package_name"

    name: Package
    """Its normalized name; written with blanks or underlines it is read, too."""
    labels: tuple[Needle, ...] = ()
    """What else it is called."""


@fact
class KeyRow(Row):
    """What a framework calls a setting, and which of its values mean what."""

    KIND: ClassVar = "key"

    framework: Literal[Framework, "any"]
    """Whose key it is; `any`: what people write in tables and reports."""
    native: Text
    """The framework's own key, dotted where it is nested."""
    canonical: SettingName
    """The common name."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Native values to common ones; where it stands, other values tell nothing (`*`: any, `=`: as it is)."""
    versions: Bound = "*"
    """The releases of the framework that have the key."""
    beside: tuple[Needle, ...] = ()
    """Words of which one is in another setting, for a key that other programs use of something else."""


@fact
class ArchitectureRow(Row):
    """The compute capabilities of an architecture."""

    KIND: ClassVar = "architecture"

    name: Text
    """What NVIDIA calls it."""
    capabilities: tuple[ComputeCapability, ...]
    """All that cards have; other rows may name no other."""


@fact
class GpuRow(Row):
    """A card by its names and PCI device ids; of two with one name the first stands for it."""

    KIND: ClassVar = "gpu"

    name: Text
    """As NVML reports it."""
    compute_capability: Capability
    """The chip's."""
    memory_gib: float | None = None
    """What NVML reports (ECC taken off where it is on), else nominal; none where a name has several sizes."""
    pci: tuple[Annotated[str, forms.PCI], ...] = ()
    """Device ids."""
    aliases: tuple[str, ...] = ()
    """Names of the market and of people."""
    processor: Literal["", "aarch64"] = ""
    """That of every machine with it (Grace, Tegra); empty where it differs."""
    wheels: str = ""
    """Who builds the wheels of torch for it, where those of the package index find no device on it."""
