"""Which uses break at which releases, since when, and what stands in their place: pure, out of the matrix."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain

from envdoctor.findings import Certainty
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.interface_homes import home_of
from envdoctor.matrix.interface_records import Record, Spans, load_record
from envdoctor.matrix.late_tables import holding
from envdoctor.rules.interface_lookup import DISTINCT, distribution_of
from envdoctor.rules.ranges import version_satisfies
from envdoctor.upgrading.arguments import (
    base_of,
    callable_of,
    has_come_elsewhere,
    imported_base,
    named_so,
    not_taken,
    owner_of,
    position,
    settings_of,
    takes_any,
)
from envdoctor.upgrading.bindings import is_class
from envdoctor.upgrading.breaks import Break, by_rename
from envdoctor.upgrading.comparing import misread
from envdoctor.upgrading.gone import (
    INHERITED,
    METHOD,
    SETTINGS,
    Move,
    gone_from,
    gone_since,
    hook_gone,
    is_another,
    is_covered,
    is_inner,
    is_within,
    left_of,
    lives,
    may_take_other,
    methods_left,
    names_of,
)
from envdoctor.upgrading.held import Held, held_by
from envdoctor.upgrading.known_settings import KnownSettings
from envdoctor.upgrading.parts import below_gone, by_attribute, models_told
from envdoctor.upgrading.paths import is_module_alone, is_open, passed_on_until, stands
from envdoctor.upgrading.renames import Renames, holds, is_taken_by_new
from envdoctor.upgrading.unsaid import (
    Asked,
    called_by_name,
    first_given,
    function_unsaid,
    methods_unsaid,
    raised_no_more,
)
from envdoctor.upgrading.uses import ALL, NAMED, OWNERLESS, WHOSEVER, Kind, Use, is_telling
from envdoctor.values import dataclass


@dataclass(frozen=True)
class Judge:
    """Judges uses by the recorded interfaces; `moves` are the libraries that change, by distribution."""

    matrix: Matrix
    moves: Mapping[str, Move]
    kinds: Collection[Kind] = tuple(Kind)
    """The uses that are judged."""
    lately: Mapping[str, Move] = field(default_factory=dict)
    """The moves of code that is taken to run as it is, from the releases of its time: only failures count."""
    _gone: dict[str, Mapping[tuple[str, str], str]] = field(default_factory=dict)
    _libraries: dict[str, str] = field(default_factory=dict)

    @cached_property
    def settings(self) -> KnownSettings:
        """What frameworks' releases tell of their settings."""
        return KnownSettings(self.matrix, self.moves)

    @cached_property
    def held(self) -> Held:
        """What members of libraries' classes are."""
        return held_by(self.matrix)

    @cached_property
    def renames(self) -> Renames:
        """The rows of renames."""
        return Renames(self.matrix.rows(tables.RenameRow), self.matrix.rows(tables.AttributeRow))

    @cached_property
    def called(self) -> Mapping[str, Sequence[tables.CalledRow]]:
        """How what libraries make is called, by library."""
        found: dict[str, list[tables.CalledRow]] = {}
        for row in self.matrix.rows(tables.CalledRow):
            found.setdefault(row.library, []).append(row)
        return found

    def library(self, path: str) -> str:
        """Return the distribution that brings a dotted path."""
        if path not in self._libraries:
            self._libraries[path] = distribution_of(self.matrix, path)
        return self._libraries[path]

    def named(self) -> re.Pattern[str]:
        """Return what finds in a text a library that moves, or a method that is judged by its name."""
        rows = (row for row in self.matrix.rows(tables.ImportNameRow) if row.distribution in self.moves)
        names = {row.module.partition(".")[0] for row in rows}
        names |= {name.replace("-", "_") for name in self.moves}
        names |= {"google"} if "protobuf" in self.moves else set()
        words = (*map(re.escape, sorted(names)), *self.renames.named(self.moves))
        records = (load_record(self.matrix.folder, library) for library in sorted(self.moves))
        settings = (f"\\w{{1,60}}{name}" for record in records if record for name in settings_of(record))
        return re.compile(rf"\b(?:{'|'.join((*words, *settings))})\b")

    def breaks(self, uses: Iterable[Use]) -> Iterator[Break]:
        """Yield what breaks, each place once; of a key that is followed to what takes it, that."""
        seen: set[tuple[object, str]] = set()
        uses = [use for use in uses if use.kind in self.kinds and self._is_met(use)]
        uses = [use for use in uses if not (self.lately and (use.unsure or use.kind in WHOSEVER))]
        above = {use.path.rpartition(".")[0] for use in uses}
        uses = [use for use in uses if use.path in above or use.unsure or not self._is_module(use)]
        libraries = {self.library(use.path) for use in uses if use.kind not in OWNERLESS}
        asked = {(use.receiver, use.name) for use in uses if use.kind is Kind.LOOSE}
        uses = [use for use in uses if not use.guarded or use.warns or self._fails_too(use)]
        for use in sorted(uses, key=lambda use: use.kind is Kind.KEY):
            for found in self._broken(use, uses, libraries, asked):
                if use.warns and not found.warned and not self._fails_too(use):
                    continue
                name = "" if use.kind is Kind.KEY else found.short
                if (use.place, name) not in seen:
                    seen |= {(use.place, name), (use.place, "")}
                    yield found

    def _broken(
        self, use: Use, uses: Sequence[Use], libraries: Collection[str], asked: Asked
    ) -> Iterator[Break]:
        match use.kind:
            case Kind.CALL:
                yield from self._call(use, libraries, asked)
            case Kind.KEY:
                yield from self._key(use, libraries)
            case Kind.LOOSE:
                yield from self._loose(use, libraries)
            case Kind.OVERRIDE:
                yield from self._override(use)
            case Kind.CAUGHT:
                rows = self.renames.raised.get(use.path.partition(".")[0], ())
                yield from raised_no_more(use, uses, rows, self.moves, self.matrix, self.library)
            case Kind.ASKED:
                yield from self._asked(use, libraries)
            case _:
                yield from self._owned(use, libraries)

    def _owned(self, use: Use, libraries: Collection[str]) -> Iterator[Break]:
        library = self.library(use.path)
        move = self.moves.get(library)
        move = move if use.kind in NAMED else self.lately.get(library, move)
        found = self._judged(use, move) if move is not None else None
        if move and not found and (told := models_told(self.matrix, library, use, move)):
            found = self._by_record(*told, move)
        if found := found or self._derived(use):
            yield replace(found, certainty=Certainty.LIKELY) if use.unsure else found
            return
        owner, _, function = use.path.rpartition(".")
        if move is None and use.kind is Kind.KEYWORD and not is_class(owner.rpartition(".")[2]):
            yield from self._key(replace(use, kind=Kind.KEY, path=function), libraries)

    def _asked(self, use: Use, libraries: Collection[str]) -> Iterator[Break]:
        """Yield a name that a library's own module had, of the libraries that the text uses."""
        for library in sorted(self.moves.keys() & set(libraries)):
            record, move = load_record(self.matrix.folder, library), self.moves[library]
            found = self._name(use, record, move, record.root, use.name) if record else None
            if found is not None:
                yield replace(found, certainty=Certainty.LIKELY, library=library)
                return

    def _is_met(self, use: Use) -> bool:
        """True for what runs with the new releases; what asks for another library's is cared for."""
        for condition in use.when:
            move = self.moves.get(self.library(condition.library))
            if move is None or not version_satisfies(move.new, f"{condition.operator}{condition.version}"):
                return False
        return True

    def _is_module(self, use: Use) -> bool:
        """True for a path of which a module alone is on record: used whole it is something else."""
        record = load_record(self.matrix.folder, self.library(use.path)) if use.kind is Kind.PATH else None
        return record is not None and is_module_alone(record, use.path)

    def _fails_too(self, use: Use) -> bool:
        """True for an import whose stand-in, of whatever age, the new release lacks as well."""
        move = self.moves.get(self.library(use.path)) if use.instead else None
        record = load_record(self.matrix.folder, self.library(use.path)) if move else None
        if move is None or record is None:
            return False
        ever = replace(move, old=None)
        return any(self._name(use, record, ever, module, name) for module, name in use.instead)

    def _judged(self, use: Use, move: Move) -> Break | None:
        return self._by_record(use, load_record(self.matrix.folder, self.library(use.path)), move)

    def _by_record(self, use: Use, record: Record | None, move: Move) -> Break | None:
        match use.kind:
            case Kind.IMPORT | Kind.STAR:
                cared = use.modules and self._module(use, record, move, use.path) and not self._fails_too(use)
                return None if cared else self._name(use, record, move, use.path, use.name)
            case Kind.MODULE:
                return None if use.modules else self._module(use, record, move, use.path)
            case Kind.PATH:
                return self._path(use, record, move)
            case Kind.KEYWORD:
                return self._keyword(use, record, move)
            case Kind.DECORATED:
                return function_unsaid(use, self.renames, self.library(use.path), move)
            case Kind.POSITION | Kind.DECORATED if self.lately and not is_class(owner_of(use.path)):
                return None  # all functions of one name are told together
            case Kind.POSITION:
                return (
                    function_unsaid(use, self.renames, self.library(use.path), move)
                    or first_given(use, self.renames, move)
                    or position(use, record, move)
                )
            case Kind.MEMBER:
                return self._member(use, record, move)
            case Kind.COMPARED:
                return misread(use, record, move)
            case _:
                return None  # told with its import, without an owner, or from another text

    def _name(self, use: Use, record: Record | None, move: Move, module: str, name: str) -> Break | None:
        path = f"{module}.{name}"
        if row := self.renames.row(path, move):
            return by_rename(use, path, row, move)
        if self.renames.is_answered(path, move):
            return None
        spans: Spans = record.names.get(module, {}).get(name, ()) if record else ()
        there = record is not None and record.has(spans, move.new)
        if not there and (found := self._by_row(use, move, module, module, name)):
            return found
        spans = spans or (record.modules.get(path, ()) if record else ())
        made_up = record is not None and is_open(record, path, move)
        if record is not None and (made_up or stands(record, path, move)):
            return below_gone(use, self.renames, move, module, warned=True)
        if record is not None and (until := passed_on_until(record, spans, move, path)):
            return Break(use, path, until, self._instead(record, move, path, name), warned=True)
        since = gone_since(record, spans, move) if record and spans else None
        if since is not None:
            return Break(use, path, since, self._instead(record, move, path, name))
        if record is None:
            return below_gone(use, self.renames, move, module)
        if spans:
            return below_gone(use, self.renames, move, module, warned=True)
        gone = self._module(use, record, move, module)
        return gone and Break(use, path, gone.since, self._instead(record, move, path, name))

    def _by_row(self, use: Use, move: Move, path: str, owner: str, name: str) -> Break | None:
        rows = self.renames.attributes.get(self.library(path), ())
        return by_attribute(rows, self.renames, use, move, f"{path}.{name}", owner)

    def _module(self, use: Use, record: Record | None, move: Move, module: str) -> Break | None:
        spans = record.modules.get(module, ()) if record else ()
        since = gone_since(record, spans, move) if record and spans else None
        if since is None:
            return below_gone(use, self.renames, move, module, warned=True)
        return Break(use, module, since, self.renames.new_name(module, move))

    def _path(self, use: Use, record: Record | None, move: Move) -> Break | None:
        parts = use.path.split(".")
        for end in range(1, len(parts)):
            module, name = ".".join(parts[:end]), parts[end]
            found = self._name(use, record, move, module, name)
            if found is not None:
                return found if end == len(parts) - 1 else None  # the shorter path is a use of its own
        owner, _, name = use.path.rpartition(".")
        inner = replace(use, path=owner, name=name)
        return self._member(inner, record, move) if is_class(owner.rpartition(".")[2]) else None

    def _keyword(self, use: Use, record: Record | None, move: Move) -> Break | None:
        owner, told = callable_of(record, use.path) if record else (owner_of(use.path), {})
        spans = told.get(use.name, ())
        shown = f"{use.path}({use.name})"
        callable_ = owner.removesuffix(".__init__")
        short = callable_.rpartition(".")[2]
        given = (f"{short}({told})" for told in use.given)
        for old in (*given, shown, f"{callable_}({use.name})", f"{short}({use.name})"):
            known = self.renames.known(old)
            if known and known.library == self.library(use.path):
                row = self.renames.row(old, move)
                return by_rename(use, shown, row, move) if row else None
        if record is None:
            return None
        if row := self.renames.other(short, use.name, move):
            return by_rename(use, shown, row, move)
        if not lives(record, told, move.new):
            return self._handed_on(use, owner, record, move)
        if self.renames.is_answered(f"{short}({use.name})", move) or is_covered(record, told, move, spans):
            return None
        if callable_.endswith(".from_pretrained"):
            return None  # what it does not know itself it hands on
        open_ = record.has(told.get("**", ()), move.new)
        ended = self.settings.gone(record.library, use.name, move) if open_ and is_class(short) else None
        if ended is not None:
            return Break(use, shown, ended, certainty=Certainty.LIKELY) if ended else None
        inherited = self.settings.is_inherited(record.library, use.name)
        if not spans:
            return None if inherited else self._handed_on(use, owner, record, move)
        own = open_ and not inherited and callable_.endswith(SETTINGS)
        if own and self.settings.is_own(record, owner, use.name, self.library):
            since = gone_from(record, told, spans, move)
            return Break(use, shown, since, certainty=Certainty.LIKELY) if since else None
        function = "." not in owner and is_telling(use.name) and is_within(told.get("**", ()), spans)
        function = function and not has_come_elsewhere(record, owner, spans)
        if open_ and (
            not (is_class(short) or function)
            or callable_.endswith(SETTINGS)
            or any(record.has(told, move.new) for told in holding(record.keywords, use.name).values())
        ):
            if is_class(short) or "." not in owner:
                return None  # what takes any argument may hand it on to who takes it
            unread = self._handed_on(use, owner, record, move)
            return replace(unread, warned=True) if unread else None
        since = None if inherited else gone_from(record, told, spans, move)
        return None if since is None else Break(use, shown, since, certainty=Certainty.LIKELY)

    def _derived(self, use: Use) -> Break | None:
        """Judge a setting of a class that is named as deriving from one of a library that moves, or a member.

        `SentenceTransformerTrainingArguments` takes what `TrainingArguments` does. `SFTTrainer` has what the
        `Trainer` has that its own library imports.
        """
        short, own = use.path.rpartition(".")[2], self.library(use.path)
        beside = load_record(self.matrix.folder, own) if own not in self.moves else None
        for library, move in self.moves.items() if is_class(short) else ():
            record = load_record(self.matrix.folder, library) if library != own else None
            if record and use.kind is Kind.KEYWORD and (above := base_of(record, short)):
                return self._keyword(replace(use, path=f"{record.root}.{above}", unsure=True), record, move)
            if record and use.kind is Kind.MEMBER and (above := imported_base(beside, record, short)):
                return self._member(replace(use, path=f"{record.root}.{above}"), record, move)
        return None

    def _handed_on(self, use: Use, owner: str, record: Record, move: Move) -> Break | None:
        """Judge a keyword that no release of a callable names: it ends at what may know it no more."""
        since = self._left(record.library).get((owner.rpartition(".")[2], use.name))
        if since is None or not may_take_other(record, owner, move) or not is_telling(use.name):
            return None
        return Break(use, f"{use.path}({use.name})", since, certainty=Certainty.LIKELY)

    def _member(self, use: Use, record: Record | None, move: Move) -> Break | None:
        owner = use.path.rpartition(".")[2]
        families = self.called.get(record.library, ()) if record else ()
        family = next((row.base for row in families if row.base and fnmatchcase(owner, row.form)), owner)
        if record is not None and owner not in record.members:
            if found := self._by_row(use, move, use.path, owner, use.name):
                return found
            owner = family
        told = record.members.get(owner, {}) if record else {}
        spans = told.get(use.name, ())
        row = self.renames.row(f"{owner}.{use.name}", move)
        if row is None and record is not None and not record.has(spans, move.new):
            row = self.renames.row(f"{family}.{use.name}", move)
        if row is not None:
            return replace(by_rename(use, f"{use.path}.{use.name}", row, move), certainty=Certainty.LIKELY)
        if record is None or not spans or not lives(record, told, move.new) or hasattr(object, use.name):
            return None
        if use.name in INHERITED and (record.has(told.get(ALL, ()), move.new) or not record.bases):
            return None  # from another package's class, or the language's
        since = gone_since(record, spans, move)
        method = f"{owner}.{use.name}" in record.keywords
        another = is_another(record, told, move) and not is_inner(record, use.name)
        if since and another and (use.name in names_of(record, move) or not method):
            since = self._left(record.library).get((METHOD, use.name))
        if since is None:
            return None
        return Break(use, f"{use.path}.{use.name}", since, certainty=Certainty.LIKELY)

    def _key(self, use: Use, libraries: Collection[str]) -> Iterator[Break]:
        """Yield an argument that is on its way to a library's function, and that it takes by another name.

        Where another library that the text imports takes an argument of that name, it may be that one's.
        """
        for row in self.renames.handed_on.get(use.name, ()):
            move = self.moves.get(row.library)
            if move is None or row.library not in libraries or not holds(row, move):
                continue
            if is_taken_by_new(use, row, self.matrix):
                return
            others = (load_record(self.matrix.folder, one) for one in libraries if one != row.library)
            if not any(holding(one.keywords, use.name) for one in others if one):
                found = by_rename(use, f"{row.library}: {use.name}", row, move)
                yield replace(found, certainty=Certainty.LIKELY)
                return

    def _loose(self, use: Use, libraries: Iterable[str]) -> Iterator[Break]:
        """Yield what no class of the libraries that the text imports has any more: the name is telling.

        What is named for another of them is that one's.
        """
        others = {library.replace("-", "_") for library in libraries if library not in self.moves} - {""}
        others |= {row.form for library in others for row in self.called.get(library, ()) if not row.base}
        if use.path == "from_pretrained":
            return  # called on a class, which anybody's may be
        if any(other in use.receiver for other in others):
            return
        if use.made and not any(self.library(one) in self.moves for one in use.made):
            return
        for library in sorted(self.moves.keys() & set(libraries)):
            shown = f"{use.path}({use.name})" if use.path else f".{use.name}"
            move = self.moves[library]
            if row := self.renames.row(shown, move):
                yield replace(by_rename(use, shown, row, move), certainty=Certainty.LIKELY)
                return
            found = self._held(use, library)
            if found and (found.replacement or "=" not in use.given):
                yield found
            if found or "=" in use.given:
                return  # what is set on anything is there then, by whatever name
            left = self._left(library)
            since = left.get((use.path, use.name)) or (left.get((ALL, use.name)) if use.path else None)
            if use.path == "" and len(use.name) < DISTINCT:
                since = None  # too short to tell whose it is
            if since and not self.renames.is_answered(shown, move):
                told = Break(use, shown, since, certainty=Certainty.LIKELY, library=library)
                record = load_record(self.matrix.folder, library)
                yield replace(told, warned=bool(use.path) and takes_any(record, use.path, move.new))
                return

    def _held(self, use: Use, library: str) -> Break | None:
        """Judge a member of what is called as the library's own are: `hf_config` is a configuration."""
        last = use.receiver.lower().rpartition("_")[2]
        base = next((row.base for row in self.called.get(library, ()) if row.form == last), "")
        record = load_record(self.matrix.folder, library) if base and not use.path else None
        if record is None:
            return None
        for owner in (base, named_so(record, use.receiver)):
            found = self._member(replace(use, path=f"{record.root}.{owner}"), record, self.moves[library])
            if found is not None:
                return replace(found, use=use)
        return None

    def _call(self, use: Use, libraries: Iterable[str], asked: Asked) -> Iterator[Break]:
        """Answer by the rows of methods, else by those that no class of the text's libraries has any more."""
        rows = self.renames.unsaid.get(use.name, ())
        yield from () if self.lately else methods_unsaid(use, rows, self.moves)
        if found := called_by_name(use, self.renames, self.moves, libraries, asked):
            yield found
            return
        for library in sorted(self.moves.keys() & set(libraries)):
            if since := self._left(library).get((METHOD, use.name)):
                yield Break(use, f".{use.name}()", since, certainty=Certainty.LIKELY, library=library)
                return

    def _left(self, library: str) -> Mapping[tuple[str, str], str]:
        """Return since when members, and keywords by their method, are in no class of a library any more."""
        if library not in self._gone:
            record = load_record(self.matrix.folder, library)
            move = self.lately.get(library, self.moves[library])
            left = chain(left_of(record, move), methods_left(record, move)) if record else ()
            self._gone[library] = dict(left)
        return self._gone[library]

    def _override(self, use: Use) -> Iterator[Break]:
        """Yield what a class's method lacks that the library calls: `argument=default`, or `method()`."""
        owner = use.path.rpartition(".")[2]
        for row in self.renames.handed.get(use.name, ()):
            move = self.moves.get(row.library)
            wanted = row.new.partition("=")[0]
            if move is None or not holds(row, move) or wanted in use.given:
                continue
            if " " in use.name and move.old is None:
                continue  # what only means another thing now may have been written so for this release
            own = self.library(use.path) == row.library
            if (own or "*." not in row.old) and fnmatchcase(f"def {owner}.{use.name}", row.old):
                told = f"call self.{row.new}" if wanted.endswith("()") else f"take {row.new}"
                shown = f"{use.path}.{use.name}() without {wanted}"
                if " " in row.new:
                    told, shown = row.new, f"{use.path}{': ' if ' ' in use.name else '.'}{use.name}"
                found = by_rename(use, shown, row, move)
                yield replace(found, replacement=told, certainty=Certainty.LIKELY)
                return
        library = self.library(use.path)
        record = load_record(self.matrix.folder, library) if library in self.moves else None
        if record is None or use.name[-1:] == ")" or use.name[:2] == "__":
            return
        left, move = self._left(library).get((METHOD, use.name)), self.moves[library]
        if not self.lately and (since := left or hook_gone(record, owner, use.name, move)):
            yield Break(use, f"{use.path}.{use.name}", since, certainty=Certainty.LIKELY)
        elif lacking := not_taken(use, record, move):
            yield lacking

    def _instead(self, record: Record | None, move: Move, path: str, name: str) -> str:
        """Return where the name is now: by a row, else in another module of the same library."""
        renamed = self.renames.new_name(path, move)
        return renamed or (home_of(record, move.new, path, name) if record else "")
