"""What a release has no more: entries of the recorded interfaces, and names that no class has any more."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain

from packaging.version import Version

from envdoctor.matrix.interface_records import Record, Spans, ancestors
from envdoctor.matrix.late_tables import holding
from envdoctor.rules.interface_lookup import DISTINCT
from envdoctor.rules.ranges import version_satisfies
from envdoctor.upgrading.uses import ALL
from envdoctor.values import dataclass

_MODULES = (
    "add_module apply bfloat16 buffers children compile cpu cuda double eval extra_repr float forward"
    " get_buffer get_extra_state get_parameter get_submodule half load_state_dict modules named_buffers"
    " named_children named_modules named_parameters parameters register_buffer register_forward_hook"
    " register_module register_parameter requires_grad_ set_extra_state set_submodule share_memory state_dict"
    " to to_empty train training type xpu zero_grad"
)
INHERITED = frozenset((*_MODULES.split(), *dir(dict), *dir(list), *dir(str), *dir(Exception)))
"""What a class may have from torch's Module or the language: gone in one file, it is still there."""
SETTINGS = ("Arguments", "Args", "Config", "Params", "Options", "Settings")
"""How classes end that hold settings: no other code puts a field into them."""
METHOD = "()"
"""Stands for the method's own name among what no class has any more."""


@dataclass(frozen=True, slots=True)
class Move:
    """From which release of a library to which; `old` None: any release in which the code may have run."""

    new: Version
    old: Version | None = None


def gone_since(record: Record, spans: Spans, move: Move) -> str | None:
    """Return the release since which something is gone; None where it stands, or was never there before."""
    if record.has(spans, move.new):
        return None
    if move.old is not None and not record.has(spans, move.old):
        return None
    place = record.place(move.new)
    ended = [last for _, last in spans if last < place]
    return record.versions[max(ended) + 1] if ended else None


def hook_gone(record: Record, owner: str, name: str, move: Move) -> str | None:
    """Return since when a class has a hook no more, whatever else of the library is called so."""
    told = record.members.get(owner, {})
    spans = told.get(name, ())
    known = spans and name.startswith("on_") and lives(record, told, move.new)
    return gone_since(record, spans, move) if known else None


def may_take_other(record: Record, owner: str, move: Move) -> bool:
    """True for a callable that may take what none of its releases names.

    It takes any, came in place of another of its name, or is a method that its class has from another now.
    """
    told = record.keywords.get(owner, {})
    holder, _, function = owner.rpartition(".")
    came = come_since(record, told.get("", ()), move) is not None
    moved = bool(holder) and function != "__init__" and not lives(record, told, move.new)
    return came or moved or record.has(told.get("**", ()), move.new)


def is_within(whole: Spans, spans: Spans) -> bool:
    """True where what ended last stood, when it ended, beside something that went on."""
    end = max((last for _, last in spans), default=-1)
    return any(first <= end < last for first, last in whole)


def come_since(record: Record, spans: Spans, move: Move) -> str | None:
    """Return the release since which the new one has something; None where it has not, or always had."""
    place = record.place(move.new)
    first = next((first for first, last in spans if first <= place <= last), 0)
    if not first or (move.old is not None and record.has(spans, move.old)):
        return None
    return record.versions[first]


def left_of(record: Record, move: Move) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield what stands in no class any more since a release: fields of settings, and keywords by method."""
    members = (
        ("", owner.endswith(SETTINGS) and not _keeps_any(record, owner, move), told)
        for owner, told in record.members.items()
    )
    keywords = ((owner.rpartition(".")[2], True, told) for owner, told in record.keywords.items())
    called = {o.rpartition(".")[2] for o, told in record.keywords.items() if lives(record, told, move.new)}
    standing = {("", name) for name in INHERITED}
    standing |= {
        (method, name)
        for method, told in record.stays.items()
        for name, spans in told.items()
        if record.has(spans, move.new)
    }
    ended: dict[tuple[str, str], str] = {}
    for method, telling, told in chain(members, keywords):
        open_ = record.has(told.get("**", ()), move.new) and not method
        open_ = open_ or (bool(method) and is_covered(record, told, move))
        standing.update((method, n) for n, spans in told.items() if open_ or record.has(spans, move.new))
        there = lives(record, told, move.new) or method in called
        if telling and there and (method or not is_another(record, told, move)):
            gone = ((name, gone_from(record, told, spans, move)) for name, spans in told.items() if name)
            ended |= {(method, name): since for name, since in gone if since}
    yield from ((key, since) for key, since in ended.items() if key not in standing)
    private = {name: since for (_, name), since in ended.items() if name[:1] == "_" and name[:2] != "__"}
    kept = {name for _, name in standing}
    yield from (((ALL, name), since) for name, since in private.items() if name not in kept)


def gone_from(record: Record, told: Mapping[str, Spans], spans: Spans, move: Move) -> str | None:
    """Return the release since which a callable or class lacks something that it had.

    One that is younger than the old release took another's place: what went after that release counts.
    """
    if move.old is None or lives(record, told, move.old):
        return gone_since(record, spans, move)
    since = gone_since(record, spans, Move(move.new))
    return since if since and Version(since) > move.old else None


def _keeps_any(record: Record, owner: str, move: Move) -> bool:
    """True for a class that is made of any arguments: it may keep as members what no file names."""
    made = record.keywords.get(f"{owner}.__init__")
    return made is None or record.has(made.get("**", ()), move.new)


def methods_left(record: Record, move: Move) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the telling names that were members and are no member, name or callable of a release any more.

    Of a class that makes members up when they are asked for, only what was a method with a signature.
    """
    standing, ended = names_of(record, move), dict[str, str]()
    for owner, told in record.members.items():
        made_up = record.has(told.get("__getattr__", ()), move.new)
        telling = ((name, spans) for name, spans in told.items() if _is_telling(name))
        methods = ((n, spans) for n, spans in telling if not made_up or f"{owner}.{n}" in record.keywords)
        left = {name: since for name, spans in methods if (since := gone_since(record, spans, move))}
        if not left or _stands_on_unread(record, owner, move):
            continue
        if lives(record, told, move.new) or is_named(record, owner, move.new):
            ended |= left
    yield from (((METHOD, name), since) for name, since in ended.items() if name not in standing)


def is_named(record: Record, owner: str, version: Version) -> bool:
    """True for a class that is another's name now: what it had is gone where no class has it."""
    return any(record.has(spans, version) for spans in holding(record.names, owner).values())


def _stands_on_unread(record: Record, owner: str, move: Move) -> bool:
    """True for a class of which a base went on record, and is a name of the new release: it has moved."""
    gone = (
        base
        for base in ancestors(record.bases, owner)
        if not lives(record, record.members.get(base, {}), move.new)
    )
    return any(record.has(spans, move.new) for base in gone for spans in holding(record.names, base).values())


@cache
def names_of(record: Record, move: Move) -> frozenset[str]:
    """Return whatever is a name, a callable or a member somewhere in the new release."""
    standing = set(INHERITED)
    for told in (*record.names.values(), *record.members.values(), record.stays.get("", {})):
        standing.update(name for name, spans in told.items() if record.has(spans, move.new))
    standing.update(
        o.rpartition(".")[2] for o, told in record.keywords.items() if lives(record, told, move.new)
    )
    return frozenset(standing)


def lives(record: Record, told: Mapping[str, Spans], version: Version) -> bool:
    """True when the callable or class itself stands in that release."""
    return "" not in told or record.has(told[""], version)


def is_covered(record: Record, told: Mapping[str, Spans], move: Move, went: Spans = ()) -> bool:
    """True for a callable of which the new release's file does not tell all: what covers it may take more.

    That is a decorator, which leaves the count of arguments untold, or a base that most fields moved to, in
    a record that does not tell bases. What `went` while such a decorator stood there went for another reason.
    """
    if not lives(record, told, move.new):
        return False
    counts = [spans for name, spans in told.items() if name[:1] == "~"]
    last = max((last for _, last in went), default=-1)
    before = [spans for spans in counts if not went or any(first <= last <= end for first, end in spans)]
    if before and not any(record.has(spans, move.new) for spans in counts):
        return True
    if record.bases:
        return False
    named = [spans for name, spans in told.items() if name.isidentifier()]
    at_once = Counter(since for spans in named if (since := gone_since(record, spans, move)))
    return 2 * max(at_once.values(), default=0) > max(len(named), 8)


def is_another(record: Record, told: Mapping[str, Spans], move: Move) -> bool:
    """True where a class may have what no file tells: it makes members up, or most of them went at once."""
    if any(record.has(told.get(open_, ()), move.new) for open_ in ("**", "__getattr__")):
        return True
    if record.bases:
        return False  # what its bases and its stub tell is on record
    gone = [gone_since(record, spans, move) for name, spans in told.items() if name]
    return 2 * sum(release is not None for release in gone) > max(len(gone), 4)


def is_inner(record: Record, name: str) -> bool:
    """True for a member that a class has for itself: no base from elsewhere brings one that is called so."""
    return bool(record.bases) and name[:1] == "_" != name[1:2] and len(name) >= DISTINCT and "_" in name[1:]


def _is_telling(name: str) -> bool:
    own = name[:1].isalpha() or len(name) >= 2 * DISTINCT  # a private name has to be a longer one
    return len(name) >= DISTINCT and own and "_" in name


def end_of(having: str) -> str:
    """Return the first release that a row's `having` leaves out after others; empty where it tells none."""
    found = re.search(r"(?:<|!=)(\d+(?:\.\d+)*)", having)
    return found[1] if found else ""


def had(having: str, move: Move) -> bool:
    """True where the release before had what a row tells of these releases."""
    return having.startswith("<") if move.old is None else version_satisfies(move.old, having)
