"""The rule over all condition rows: what holds is found, what a symptom hints at is weighed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import commands, install_commands, is_inert
from envdoctor.facts import Symptom
from envdoctor.facts.names import NOT_PACKAGES, normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.tables.conditions import ConditionRow, RowRemedy
from envdoctor.patterns import glob_matches
from envdoctor.rules.base import NO_LINE, Skip
from envdoctor.rules.conditions import (
    Answer,
    any_holds,
    conjunction,
    is_distribution,
    judge,
    judge_all,
)
from envdoctor.rules.ranges import is_specifier, text_matches
from envdoctor.rules.toward import commands_toward
from envdoctor.rules.view import View, quoted

_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_./-]+)\}")
_EITHER = re.compile(r"(?:\{sym\.\w{1,40}\}){2,6}")
_TIDY = re.compile(r" ?\((?:\(not told\)[^()]*|…(?: [^()]*)?)\)")
_NAMED = re.compile(r"\b([A-Za-z0-9_.-]+) \{([A-Za-z0-9_.-]+)\}")
_OPTIONAL = re.compile(r"\[\[([^\[\]{}]{0,200}\{[^\[\]]{1,200})\]\]")
"""A part of a text that is said where all that it names is known."""
_APPENDED = re.compile(r"(\S{1,40}) \{(sym\.\w{1,40})\}(?=[:;,)]|$)")
_LEADS_ON = re.compile(
    r"\b(?:an?|the|of|to|with|against|for|by|has|is|in|are|between|than|from|needs|dtype)$"
)
"""Words behind which a sentence cannot end."""
_PACKAGE = "PACKAGE"
"""What a command calls the package that the text shows being built."""
NOT_SAID = "(not told)"
_CURED = (
    " But what mends it is there already, by the versions told:"
    " another environment may have failed, or the cause is another."
)
_KINDS = ("arch", "gpu.name", "toolkit")
"""What a row for one kind of machine or toolkit hangs on: where none is told, the general row answers."""
_SYSTEM = ("os", "arch", "wsl")
"""What a row or a remedy for one system hangs on: said of no other, and not where none is told."""
_DECISIVE, _PROBABLE, _HALF = 0.9, 0.6, 0.5
_UNTOLD = 0.5
"""What is left of the prior of a row for one card, or for a package, that is nowhere told."""


def check_row(view: View, row: ConditionRow) -> Finding | None:
    """Judge one row; returns None when it does not speak, raises Skip when facts are missing."""
    seen = [s for s in view.facts.symptoms if _explains(row, s)] if row.symptoms else []
    if row.needs_symptom and not seen:
        raise Skip(NO_LINE)
    answers, exceptions = judge_all(view, row.when), judge_all(view, row.unless)
    if row.needed:
        answers |= {key: one.denied for key, one in exceptions.items()}
    verdict = conjunction(answers.values())
    if verdict is False or any_holds(exceptions.values()):
        return None
    if verdict is None and _is_guess(row, answers):
        raise Skip("the report tells none of the settings that decide")
    if verdict is None and not seen:
        missing = sorted(key for key, answer in answers.items() if answer.holds is None)
        raise Skip(f"not told: {', '.join(missing)}")
    return _finding(view, row, answers, verdict, seen)


def _is_guess(row: ConditionRow, answers: Mapping[str, Answer]) -> bool:
    """True when a row hangs on settings, the system, its architecture, a card or a package, and none is told.

    An error line that names neither is answered by the general row for it.
    """
    if row.needs_symptom and _hangs_on_a_system(row.when, answers):
        return True
    if row.needed and row.when and all(answers[key].holds is None for key in row.when):
        return True
    named = [k for k, text in row.when.items() if k.startswith("setting.") or k in _KINDS or text == "*"]
    return bool(named) and all(answers[key].holds is None for key in row.when) and len(named) == len(row.when)


def _blames_a_stranger(view: View, answers: Mapping[str, Answer]) -> bool:
    """True where all that is told of what a row hangs on is of other things than its packages.

    None of them is told, and the report nowhere names one.
    """
    packages = [key for key in answers if is_distribution(key)]
    others = any(answer.holds for key, answer in answers.items() if key not in packages)
    return (
        others and bool(packages) and not any(view.facts.distribution(p) or view.names(p) for p in packages)
    )


def _speaks_of_the_unseen(view: View, row: ConditionRow, answers: Mapping[str, Answer]) -> bool:
    """True where words alone blame packages that the report neither tells nor names: another may use them."""
    if any(answer.holds for key, answer in answers.items() if not key.startswith("sym.")):
        return False
    told = {*answers, *(name for remedy in row.remedies for name in remedy.pins)} - NOT_PACKAGES
    packages = [name for name in told if is_distribution(name) and "{" not in name]
    return bool(packages) and not any(view.facts.distribution(p) or view.names(p) for p in packages)


def _explains(row: ConditionRow, symptom: Symptom) -> bool:
    named = any(glob_matches(symptom.id, pattern) for pattern in row.symptoms)
    return named and all(
        text_matches(symptom.captured.get(group, ""), text) for group, text in row.captured.items()
    )


def _finding(
    view: View, row: ConditionRow, answers: Mapping[str, Answer], verdict: bool | None, seen: list[Symptom]
) -> Finding:
    fill = _Filler(view, seen, answers)
    cures = [remedy for remedy in row.remedies if _applies(view, remedy)]
    met = [remedy for remedy in cures if already_met(view, remedy.pins)]
    tried = met if seen else []
    strange = verdict is None and _blames_a_stranger(view, answers)
    certainty = Certainty.UNCERTAIN if strange else _certainty(row, answers, verdict, seen)
    if certainty is Certainty.CERTAIN and _speaks_of_the_unseen(view, row, answers):
        certainty = Certainty.LIKELY
    return Finding(
        id=row.id,
        severity=Severity(row.severity if seen else row.unseen or row.severity),
        summary=fill(row.summary),
        cause=fill(row.cause) + (_CURED if tried == cures and tried else ""),
        evidence=(*_evidence(answers.values()), *quoted(seen)),
        remedies=(
            *(_elsewhere(view, tried) if row.prior >= _DECISIVE else ()),
            *_remedies(view, (cure for cure in cures if cure not in met), fill),
        ),
        certainty=_doubted(certainty, len(cures), len(tried)),
        rows=(row.id,),
        sources=(row.source,),
        explains=tuple(dict.fromkeys(symptom.id for symptom in seen)),
        prior=row.prior * _weight(answers) * (_UNTOLD if strange else 1.0),
        fallback=row.fallback,
        follows=row.consequence_of,
    )


def _applies(view: View, remedy: RowRemedy) -> bool:
    answers = judge_all(view, remedy.when)
    return conjunction(answers.values()) is not False and not _hangs_on_a_system(remedy.when, answers)


def _hangs_on_a_system(when: Mapping[str, str], answers: Mapping[str, Answer]) -> bool:
    """True where another system than Linux, or a processor, is meant and none is told."""
    return any(k in when and when[k] != "linux" and answers[k].holds is None for k in _SYSTEM)


def _elsewhere(view: View, tried: Sequence[RowRemedy]) -> Iterable[Remedy]:
    """Where an error can come of no release that is told, another one ran: say how it is found and mended."""
    for pins in (remedy.pins for remedy in tried):
        for name, version in ((name, view.version(name)) for name in pins):
            if version is not None:
                yield Remedy(
                    f"This does not come of {name} {version}, which is told: see what the interpreter that"
                    f" failed has, and install {name}{pins[name]} there.",
                    (*commands("python -m pip show {}", name), *install_commands({name: pins[name]})),
                )


def _certainty(
    row: ConditionRow, answers: Mapping[str, Answer], verdict: bool | None, seen: Sequence[Symptom]
) -> Certainty:
    """All conditions known: certain. Some: likely. None, or words alone: by how often it is the cause.

    Of an error line that has other causes as well, conditions that hold make a cause likely at most.
    """
    told = {key: answer for key, answer in answers.items() if not key.startswith("sym.")}
    if verdict and told:
        rivals = row.needs_symptom and row.prior < _DECISIVE
        return Certainty.LIKELY if rivals else Certainty.CERTAIN
    if told:
        enough = not row.needs_symptom or row.prior * _share_told(told) >= _HALF
        return (
            Certainty.LIKELY
            if enough and any(answer.holds for answer in told.values())
            else Certainty.UNCERTAIN
        )
    if row.prior >= _DECISIVE:
        return Certainty.CERTAIN
    return Certainty.LIKELY if row.prior >= _PROBABLE else Certainty.UNCERTAIN


def _weight(answers: Mapping[str, Answer]) -> float:
    """How much of a row's prior counts: of a card that is not told a row for one card is a guess."""
    cards = [answer for key, answer in answers.items() if key.startswith("gpu.")]
    untold = bool(cards) and not any(answer.holds for answer in cards)
    return _share_told(answers) * (_UNTOLD if untold else 1.0)


def _share_told(answers: Mapping[str, Answer]) -> float:
    """The share of the settings that a row hangs on that are told: of a run not told of it is a guess."""
    settings = [answer for key, answer in answers.items() if key.startswith("setting.")]
    return sum(answer.holds is True for answer in settings) / len(settings) if settings else 1.0


def _doubted(certainty: Certainty, cures: int, tried: int) -> Certainty:
    """A cure that is in place and did not cure speaks against the cause; where all are, it is a guess."""
    if not tried:
        return certainty
    if tried == cures or certainty is Certainty.UNCERTAIN:
        return Certainty.UNCERTAIN
    return Certainty.LIKELY


def _evidence(answers: Iterable[Answer]) -> Iterable[Evidence]:
    return dict.fromkeys(e for answer in answers if answer.holds for e in answer.evidence)


def _remedies(view: View, remedies: Iterable[RowRemedy], fill: _Filler) -> Iterable[Remedy]:
    for remedy in remedies:
        pins = {fill(name): fill(specifier) for name, specifier in remedy.pins.items()}
        if not all(map(is_specifier, pins.values())):  # a value is not told, or was quoted with its full stop
            continue
        known = [command for template in remedy.commands if (command := fill.command(template))]
        filled = list(commands_toward(view, known, remedy.toward))
        yield Remedy(fill(remedy.text), _of_the_system(view, filled) or install_commands(pins), pins)


def _of_the_system(view: View, commands: Sequence[str]) -> tuple[str, ...]:
    if not commands:
        return ()
    from envdoctor.rules.system_packages import fitting_commands

    return fitting_commands(view, commands)


def already_met(view: View, pins: Mapping[str, str]) -> bool:
    """A remedy whose every pin holds already mends nothing."""
    if not pins or any("{" in specifier for specifier in pins.values()):
        return False
    keys = {"nvidia-driver": "driver"}
    return all(judge(view, keys.get(name, name), specifier).holds for name, specifier in pins.items())


class _Filler:
    """Fills `{torch}`, `{gpu.cc}` or `{sym.lib}` in a row's texts from facts and captured groups.

    `{sym.free/total}` is the share that one captured number is of another, down to two digits; `[[a part]]`
    is left out where something that it names is not known.
    """

    def __init__(self, view: View, seen: list[Symptom], answers: Mapping[str, Answer]) -> None:
        self._view = view
        asked = {key[4:]: one.evidence[0].value for key, one in answers.items() if _is_captured(key, one)}
        self._captured = asked | {
            key: value for symptom in reversed(seen) for key, value in symptom.captured.items()
        }

    def __call__(self, template: str) -> str:
        template = _OPTIONAL.sub(self._optional, _EITHER.sub(self._either, template))
        told = _APPENDED.sub(self._appended, _NAMED.sub(self._named, template))
        return _TIDY.sub("", _PLACEHOLDER.sub(self._value, told))

    def _optional(self, match: re.Match[str]) -> str:
        return match[1] if all(map(self._known, _PLACEHOLDER.findall(match[1]))) else ""

    def _named(self, match: re.Match[str]) -> str:
        """Of a package that stands beside its own version leave the name, where the version is not told."""
        same = match[1].lower() == match[2].lower()
        return match[1] if same and not self._known(match[2]) else match[0]

    def _appended(self, match: re.Match[str]) -> str:
        """Leave out what is only added to a part of a sentence, where it is not known."""
        return match[0] if self._known(match[2]) or _LEADS_ON.search(match[1]) else match[1]

    def _either(self, match: re.Match[str]) -> str:
        """Of captures that stand together, one for each way of saying it, keep what was captured."""
        keys = _PLACEHOLDER.findall(match[0])
        known = next((key for key in keys if self._known(key)), keys[0])
        return f"{{{known}}}"

    def command(self, template: str) -> str | None:
        """Fill a command; None when a value is not known or would be more than a word to a shell."""
        values = {key: self._known(key) for key in _PLACEHOLDER.findall(template)}
        if not all(value and is_inert(value) for value in values.values()):
            return None
        told = self(template)
        return told.replace(_PACKAGE, self._built()) if _PACKAGE in told else told

    def _built(self) -> str:
        """Return the one package that the text shows being built, else the word that stands for it."""
        seen = [symptom.captured for symptom in self._view.facts.symptoms]
        failed = {normalise(captured["built"]) for captured in seen if "built" in captured}
        built = failed or {normalise(captured["asked_for"]) for captured in seen if "asked_for" in captured}
        return built.pop() if len(built) == 1 and all(map(is_inert, built)) else _PACKAGE

    def _value(self, match: re.Match[str]) -> str:
        missing = "…" if match[1].startswith("sym.") else NOT_SAID
        return self._known(match[1]) or missing

    def _known(self, key: str) -> str | None:
        if key.startswith("sym."):
            part, _, whole = key[4:].partition("/")
            told = self._captured.get(part)
            return share_of(told, self._captured.get(whole)) if whole else told
        try:
            evidence = judge(self._view, key, "*").evidence
        except ValueError:
            evidence = ()
        return evidence[0].value if evidence else None


def _is_captured(key: str, answer: Answer) -> bool:
    """True for a condition on what another line captured, which holds."""
    return key.startswith("sym.") and bool(answer.evidence)


def share_of(part: str | None, whole: str | None) -> str | None:
    """Return the share that one number is of another, down to two digits; None where either is none."""
    try:
        return f"{math.floor(100 * float(part or '') / float(whole or '')) / 100:.2f}"
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
