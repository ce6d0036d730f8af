"""Rows about nodes that work together."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Row, Severity, Text, fact

MIXTURE_WORDS = {"capabilities": "", "lowest": "", "forbidden": "", "split": ""}


def _check_mixture(text: str) -> str | None:
    try:
        text.format_map(MIXTURE_WORDS)
    except (KeyError, ValueError) as error:
        return f"{error} is nothing to fill in"
    return None


MIXTURE = forms.Form(
    "mixture", "words with `{capabilities}`, `{lowest}`, `{forbidden}`, `{split}`", _check_mixture
)


@fact
class AgreementRow(Row):
    """What must be equal on all nodes; the first row that names a fact judges it."""

    names: tuple[str, ...]
    """What is compared, `*` for any letters."""
    severity: Severity | Literal["none"]
    """How grave a difference is; `none`: it is not compared."""
    why: Text
    """Why it must agree."""
    follows: tuple[str, ...] = ()
    """Facts that explain a difference of this one when the same nodes differ in them."""
    nearness: float = 0.0
    """Sizes within this share of each other are equal."""
    absence: bool = False
    """True when not knowing it on some nodes, while most tell it, is a difference."""
    nothing: str = ""
    """The value that means there is nothing: where most have it, not knowing is no difference."""


@fact
class FleetFactRow(AgreementRow):
    """A fact that must agree between nodes."""

    KIND: ClassVar = "fleet_fact"


@fact
class FleetPackageRow(AgreementRow):
    """Packages whose versions must agree between nodes."""

    KIND: ClassVar = "fleet_package"

    names: tuple[Annotated[str, forms.PACKAGE_GLOB], ...]
    """The packages, `*` for any letters."""


@fact
class FleetVariableRow(AgreementRow):
    """Environment variables that must agree between nodes."""

    KIND: ClassVar = "fleet_variable"


@fact
class FleetMixtureRow(Row):
    """What is said of nodes whose cards differ."""

    KIND: ClassVar = "fleet_mixture"

    severity: Severity
    """How grave it is."""
    summary: Annotated[str, MIXTURE]
    """What is said."""
    cause: Annotated[str, MIXTURE]
    """Why."""
    remedy: Annotated[str, MIXTURE]
    """What to do."""


@fact
class FleetStandardRow(Row):
    """What nodes with certain cards must be like, however many of them are not."""

    KIND: ClassVar = "fleet_standard"

    cards: tuple[str, ...] = ()
    """Names as NVML reports them, `*` for any letters; empty for all that have NVIDIA GPUs."""
    product: str = ""
    """The machine's model, `*` for any letters; empty for all."""
    severity: Severity
    """How grave it is to fall short."""
    expects: Mapping[str, str]
    """Facts by name, with what they must be: `18`, `1|2|4|8`, `>=700`, `*` for any letters."""
    remedy: Text
    """What to do."""
