"""Keys of configuration files and options of launch commands that a release no longer knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from envdoctor.findings import Certainty
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.interface_records import Spans, load_record
from envdoctor.profile.keys import KeyFacts
from envdoctor.python_source import parse_python
from envdoctor.rules.interface_lookup import DISTINCT
from envdoctor.upgrading.breaks import Break, by_rename
from envdoctor.upgrading.gone import Move, gone_since
from envdoctor.upgrading.judging import Judge
from envdoctor.upgrading.sources import KEYED
from envdoctor.upgrading.uses import Kind, Place, Use

FEW = 3
"""Keys of a framework's own that make a file one of its settings."""
_KEY = re.compile(r"^\s{0,12}[\"']?([a-z][a-z0-9_]{2,60})[\"']?\s{0,4}[:=](?!=)")
_SCRIPT = re.compile(r"\S{1,200}\.py(?!\S)|(?<!\S)-m\s{1,8}\S")
_LAUNCHERS = ("torchrun", "accelerate launch", "deepspeed ")
"""Commands whose options before the script are their own."""
_WORD = re.compile(r"[\"']--([a-z][\w-]{2,60})[\"']")
_FIELD = re.compile(r"[\"']([a-z]\w{2,60})[\"']")
_ARGUMENTS = re.compile(r"train(?:er|ing)?_?(?:args|arguments|kwargs)", re.IGNORECASE)
_SET = re.compile(r"^[ \t]{1,40}([a-z]\w{2,60})[ \t]{0,8}(?::[^=\n]{1,80})?=(?!=)", re.MULTILINE)
_OPTION = re.compile(r"(?<!\S)--([a-zA-Z][\w-]{2,60})")
_VARIABLE = re.compile(r"(?<![\w$])([A-Z][A-Z0-9]{1,20}_[A-Z0-9_]{2,60})(?!\w)")
_QUOTED = re.compile(r"[\"']([A-Z][A-Z0-9]{1,20}_[A-Z0-9_]{2,60})[\"']")


def judge_settings(judge: Judge, suffix: str, text: str) -> Iterator[Break]:
    """Yield the keys or options in a text that the framework's new release lacks."""
    for framework, move in judge.moves.items():
        facts = judge.settings.of(framework)
        if facts is None or (suffix == ".py" and _quoted(text).isdisjoint(judge.settings.ended(framework))):
            continue
        for name, place in _found(facts, suffix, text, judge.settings.launches(framework)):
            use, row = Use(Kind.SETTING, framework, place, name), _row_of(judge, name, move)
            if since := facts.gone_since(name, move.new, move.old):
                yield Break(use, f"{framework}: {name}", since, row.new if row else "")
            elif row is not None and row.library == framework:
                yield by_rename(use, f"{framework}: {name}", row, move)
        yield from _assigned(facts, judge, text, move) if suffix == ".py" and not judge.lately else ()


def _assigned(facts: KeyFacts, judge: Judge, text: str, move: Move) -> Iterator[Break]:
    """Yield the keys of dictionaries that hold the arguments of a training."""
    try:
        groups = list(_dictionaries(facts, parse_python(text)))
    except SyntaxError:
        return
    for told in groups:
        mine = facts.for_file(set(told.values()), str(move.old) if move.old else None)
        for node, name in told.items():
            since = mine.gone_since(name, move.new, move.old)
            if since and not judge.settings.is_inherited(facts.framework, name):
                quote = isinstance(node, ast.Constant)
                place = Place(node.lineno, node.col_offset + quote, (node.end_col_offset or 0) - quote)
                use = Use(Kind.SETTING, facts.framework, place, name)
                shown = f"{facts.framework}: {name}"
                row = _row_of(judge, name, move)
                yield Break(use, shown, since, row.new if row else "", Certainty.LIKELY)


def _dictionaries(facts: KeyFacts, tree: ast.Module) -> Iterator[Mapping[ast.expr, str]]:
    """Yield the plain keys of a dictionary named for the arguments of a training, and of literals of them.

    Such a literal, or class that derives from nothing, has several keys, most of them the framework's; where
    only half of them are, those count whose long names nobody else has.
    """
    put: list[ast.expr | None] = []
    known = facts.fields.keys() | {key for fields in facts.trainers.values() for key in fields}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            slots = (
                t for t in node.targets if isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name)
            )
            put += [t.slice for t in slots if _ARGUMENTS.search(ast.unparse(t.value))]
        elif isinstance(node, (ast.Dict, ast.ClassDef)):
            told = _plain(node.keys) if isinstance(node, ast.Dict) else _fields(node)
            stand = sum(name in known for name in told.values())
            whole = len(node.keys) if isinstance(node, ast.Dict) else len(told)
            if stand >= 2 * FEW and 2 * stand >= whole:
                most = 4 * stand >= 3 * whole
                yield {key: name for key, name in told.items() if most or len(name) >= 2 * DISTINCT}
    yield _plain(put)


def _fields(node: ast.ClassDef) -> dict[ast.expr, str]:
    """Return what the body of a class that derives from nothing sets."""
    body = node.body if not node.bases else ()
    targets = (
        one.targets[0] if isinstance(one, ast.Assign) else getattr(one, "target", None) for one in body
    )
    return {target: target.id for target in targets if isinstance(target, ast.Name)}


def _plain(keys: Iterable[ast.expr | None]) -> dict[ast.expr, str]:
    constants = (key for key in keys if isinstance(key, ast.Constant))
    return {key: key.value for key in constants if isinstance(key.value, str)}


def judge_variables(matrix: Matrix, moves: Mapping[str, Move], suffix: str, text: str) -> Iterator[Break]:
    """Yield the environment variables that a new release no longer reads; in code, those in quotes.

    Nothing fails for them, so they are warnings.
    """
    for library, move in moves.items():
        module, names = _variables(matrix, library)
        found = _QUOTED if suffix == ".py" else _VARIABLE
        for number, line in enumerate(text.split("\n") if module else (), 1):
            for match in found.finditer("" if line.lstrip()[:1] == "#" else line):
                since = _name_gone(matrix, library, names.get(match[1], ()), move)
                if since:
                    use = Use(Kind.VARIABLE, module, Place(number, match.start(1), match.end(1)), match[1])
                    yield Break(use, match[1], since, certainty=Certainty.LIKELY, warned=True)


def _variables(matrix: Matrix, library: str) -> tuple[str, Mapping[str, Spans]]:
    """Return the module in which a library names its environment variables, and those called after it.

    What is called otherwise, others may ask for as well.
    """
    record = load_record(matrix.folder, library)
    module = f"{record.root}.envs" if record else ""
    every = {**record.variables, **record.names.get(module, {})} if record else {}
    own = {name: told for name, told in every.items() if f"_{module[:-5].upper()}_" in f"_{name}_"}
    return (module, own) if own else ("", {})


def _name_gone(matrix: Matrix, library: str, spans: Spans, move: Move) -> str | None:
    record = load_record(matrix.folder, library)
    return gone_since(record, spans, move) if record and spans else None


def _row_of(judge: Judge, key: str, move: Move) -> tables.RenameRow | None:
    """Return the row that tells which key took another's place."""
    owners = ("TrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig", "LLM")
    rows = (judge.renames.row(f"{owner}({key})", move) for owner in owners)
    return next((row for row in rows if row is not None), None)


def _found(facts: KeyFacts, suffix: str, text: str, launches: Sequence[str]) -> Iterator[tuple[str, Place]]:
    if suffix == ".py":
        return _listed(facts, text)
    return _keys(facts, text) if suffix in KEYED else _options(launches, text)


def _quoted(text: str) -> set[str]:
    """Return the words that may be fields, in quotes or set in a class, or options of a command."""
    options = {word.replace("-", "_") for word in _WORD.findall(text)}
    return options | {*_FIELD.findall(text), *_SET.findall(text)}


def _listed(facts: KeyFacts, text: str) -> Iterator[tuple[str, Place]]:
    """Yield the options in lists of a command's words, and the fields in lists of fields: most are known."""
    try:
        tree = parse_python(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        words = node.elts if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else []
        for form, few, share in ((_WORD, FEW, 0.75), (_FIELD, 2 * FEW, 0.5)):
            told = [
                (m[1].replace("-", "_"), word) for word in words if (m := form.fullmatch(ast.unparse(word)))
            ]
            known = sum(name in facts.fields for name, _ in told)
            stand = sum(facts.has(name) is True for name, _ in told)
            if known >= few and known >= share * len(told) and 2 * stand > known:
                for name, word in told:
                    start = word.col_offset + 1
                    end = (word.end_col_offset or 0) - 1
                    yield name, Place(word.lineno, start, end)


def _keys(facts: KeyFacts, text: str) -> Iterator[tuple[str, Place]]:
    """Yield the outermost keys of a file of the framework's settings; what lies deeper is another's."""
    lines = text.split("\n")
    every = [(m, n) for n, line in enumerate(lines, 1) if (m := _KEY.match(line))]
    outermost = min((m.start(1) for m, _ in every), default=0)
    found = [(m, n) for m, n in every if m.start(1) == outermost]
    known = {m[1] for m, _ in found if m[1] in facts.fields and "_" in m[1]}
    if len(known) >= FEW:
        yield from ((m[1], Place(n, m.start(1), m.end(1))) for m, n in found)


def _options(launches: Sequence[str], text: str) -> Iterator[tuple[str, Place]]:
    """Yield the options of commands that start the framework; a command goes on after a backslash.

    Of a script that is only called like one of its commands, those whose names tell whose they are.
    """
    ours = launching = named = False
    commands = {word.strip() for word in launches}
    for number, line in enumerate(text.split("\n"), 1):
        stripped, script = line.strip(), _SCRIPT.search(line)
        goes_on = launching and script is not None
        if stripped and not stripped.startswith("-") and not goes_on:
            ours = any(word in stripped for word in launches)
            launching = ours and any(word in stripped for word in _LAUNCHERS)
            named = not commands.isdisjoint(stripped.split())
        launching = launching and script is None
        if ours and not launching:
            for match in _OPTION.finditer(line, script.end() if script else 0):
                name = match[1].replace("-", "_")
                if named or "_" in name:
                    yield name, Place(number, match.start(1), match.end(1))
