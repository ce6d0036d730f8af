"""The plan as a section: what changes, what to type, what to ask for, what is left."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor.commands import ANY
from envdoctor.facts.quantities import counted
from envdoctor.findings import Download, Move, Plan, SettingMove
from envdoctor.report.document import Row, Rows, Section, Span, Words

FEW = 3
"""Packages of unknown size that are named; more are counted."""
NO_BREAK = "\xa0"
SHOWN = 8
"""Packages that come in by themselves and are named; more are counted."""


def plan_section(plan: Plan, here: bool = True) -> Section:
    """Return the plan of a diagnosis; not `here` where a text was examined, and not this machine."""
    return Section(_title(plan), (Rows(tuple(_rows(plan, here))),), "ok" if plan.complete else "warning")


def _title(plan: Plan) -> Words:
    count = sum(1 for move in plan.moves if move.old or move.new is None) + len(plan.settings)
    none = "no change of packages or settings mends it" if plan.unsolved else "nothing to install"
    if _asks_for_all(plan):
        none = "for who looks after the machine"
    elif plan.by_hand:
        none = "by hand"
    what = counted(count, "change") if count else _coming(plan) or none
    state = "judged again: no error is left" if plan.complete else "not the whole cure"
    state = "uncertain" if (plan.notes or plan.by_hand) and not plan.unsolved else state
    return (Span("Plan", "strong"), f"  {what}", Span(f"  {state}", "dim"))


def _asks_for_all(plan: Plan) -> bool:
    """True when all that the plan leaves is asked of whoever looks after the machine."""
    return bool(plan.unsolved) and len(plan.host) == len(plan.unsolved)


def _coming(plan: Plan) -> str:
    return f"{counted(len(plan.moves), 'package')} to come in" if plan.moves else ""


def _rows(plan: Plan, here: bool) -> Iterator[Row]:
    moving = [move for move in plan.moves if move.old is not None or move.new is None]
    coming = [move for move in plan.moves if move.old is None and move.new is not None]
    rows = [Row("", words_of(move)) for move in moving]
    if coming:
        named = ", ".join(f"{one.name}{_release(one, NO_BREAK)}" for one in coming[:SHOWN])
        more = f" and {len(coming) - SHOWN} more" if len(coming) > SHOWN else ""
        rows.append(Row("", f"new: {named}{more}"))
    rows += [Row("", setting_words(one)) for one in plan.settings]
    yield from (row._replace(label="" if i else "change") for i, row in enumerate(rows))
    if plan.commands:
        place = "here and in no other environment" if here else "in the environment that this tells of"
        where = place if plan.moves else "in the shell that starts the run"
        yield Row("do", where, commands=plan.commands)
    yield from (Row("" if i or plan.commands else "do", words) for i, words in enumerate(plan.by_hand))
    if plan.download:
        yield from (Row("" if i else "cost", words) for i, words in enumerate(_cost_words(plan.download)))
    yield from (Row("" if i else "ask", words) for i, words in enumerate(plan.host))
    if plan.unsolved:
        until = "until that is done stands" if _asks_for_all(plan) else "this does not solve"
        yield Row("left", f"{until} {', '.join(plan.unsolved)}")
    yield from (Row("" if i else "note", words) for i, words in enumerate(plan.notes))


def _cost_words(download: Download) -> Iterator[str]:
    """Yield what is downloaded, and of what that is not known, the packages of one reason together."""
    if download.size is not None:
        more = "" if download.whole else "; what they bring along is not told"
        beside = ", beside what is not known" if download.unknown else ""
        yield f"at most {megabytes(download.size)} to download{beside}{more}"
    reasons: dict[str, list[str]] = {}
    for name, why in download.unknown.items():
        reasons.setdefault(why, []).append(name)
    for why, names in reasons.items():
        more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
        yield f"size not known: {', '.join(names[:FEW])}{more} ({why})"


def megabytes(size: int) -> str:
    """Return bytes in the words of installers: `888.1 MB`."""
    for unit, bytes_ in (("GB", 1e9), ("MB", 1e6)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size / 1e3:.0f} kB"


def _release(move: Move, blank: str = " ") -> str:
    """Return the release that comes in after its name; nothing where any release will do."""
    return "" if move.new == ANY else f"{blank}{move.new}"


def words_of(move: Move) -> Words:
    """Return a move in words: `numpy 2.0.1 → 1.26.4`."""
    name = Span(move.name, "code")
    if move.new is None:
        return (name, f" {move.old or ''} → removed")
    if move.old is None:
        return (name, f"{_release(move)}, new")
    return (name, f" {move.old}, installed again" if move.old == move.new else f" {move.old} → {move.new}")


def setting_words(move: SettingMove) -> Words:
    """Return a setting's change in words: `bf16 true → false in train.yaml`."""
    place = f" in {move.file}" if move.file else ""
    return (Span(move.key, "code"), f" {f'{move.old} → ' if move.old else '= '}{move.new}{place}")
