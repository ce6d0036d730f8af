"""Rows that decide something by themselves."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar, Literal

from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Conditions, Fact, Row, Severity, SymptomGlob, Template, fact


@fact
class RowRemedy(Fact):
    """A remedy as a row states it."""

    text: Template
    """What to do."""
    commands: tuple[Template, ...] = ()
    """What to type; without any, the installation of `pins`."""
    pins: Annotated[Mapping[str, str], forms.PINS] = field(default_factory=dict)
    """Versions that mend it; a remedy whose pins all hold already is not offered."""
    toward: Mapping[str, Literal["up", "down"]] = field(default_factory=dict)
    """Which way it moves the number of a flag: one that the run is past already is left out of `commands`."""
    when: Conditions = field(default_factory=dict)
    """Where it is offered at all."""


@fact
class ConditionRow(Row):
    """Where all of `when` holds and nothing of `unless`, something is wrong.

    With `raises = "symptom"` it speaks only when one of `symptoms` was seen; then unknown conditions lower
    its certainty and contradicted ones silence it. A symptom counts only if it captured what `captured` says.
    """

    KIND: ClassVar = "row"

    severity: Severity
    """How grave it is."""
    unseen: Severity | None = None
    """How grave it is where its conditions hold and no such line was seen: not everyone does what fails."""
    summary: Template
    """What is wrong, in a sentence."""
    cause: Template
    """Why."""
    when: Conditions = field(default_factory=dict)
    """Conditions on the facts, all of which must hold."""
    unless: Conditions = field(default_factory=dict)
    """Conditions of which none may hold."""
    symptoms: tuple[SymptomGlob, ...] = ()
    """Error lines that it explains."""
    captured: Annotated[Mapping[str, str], forms.CAPTURED] = field(default_factory=dict)
    """What such a line must have captured."""
    raises: Literal["always", "symptom"] | None = None
    """When it speaks: by its conditions alone (the default with `when`), or only beside a symptom."""
    remedies: tuple[RowRemedy, ...] = ()
    """What mends it, the best first."""
    consequence_of: tuple[str, ...] = ()
    """Findings (ids, `*` for any letters) that it follows from."""
    prior: float = 0.5
    """How often such a symptom has this cause, 0 to 1, where nothing else tells."""
    fallback: bool = False
    """True: it speaks only where nothing better explains the symptom."""
    solve: bool = True
    """False: the solver does not forbid what `when` describes."""
    needed: bool = False
    """True: the one package of `when` needs the first of `unless`, and no metadata says so: the solver adds
    it, unless another of these, which serve as well, or an extra of the package is asked for."""
    in_use: bool = False
    """True: what `when` describes installs and imports, and fails only in a use that not everyone makes;
    against two lines that someone wrote the solver says so and forbids nothing."""

    @property
    def needs_symptom(self) -> bool:
        """True when it speaks only beside one of its symptoms."""
        return self.raises == "symptom" or (self.raises is None and not self.when)

    def problem(self) -> str | None:
        """A row without conditions and symptoms would never or always speak."""
        if not self.when and not self.symptoms:
            return "neither when nor symptoms"
        if self.needs_symptom and not self.symptoms:
            return "raises is 'symptom', and there are no symptoms"
        if self.needed and not (len(self.when) == 1 and self.unless):
            return "needed takes one package in when, and one in unless, with those that serve as well"
        return None if 0 <= self.prior <= 1 else "prior is no share (0 to 1)"
