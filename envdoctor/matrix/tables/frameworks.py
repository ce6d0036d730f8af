"""Rows about what trains and serves: whose settings it takes, how it is started, how its parsers speak."""

from typing import Annotated, ClassVar, Literal

from envdoctor.matrix import forms
from envdoctor.matrix.tables.lexicon import Framework, Needle
from envdoctor.matrix.tables.row import Row, SymptomGlob, Text, fact


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
