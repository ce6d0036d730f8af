"""Options of commands that start a script: fields of the classes that the script parses them into."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from envdoctor.matrix.interface_records import load_record
from envdoctor.python_source import parse_python
from envdoctor.upgrading.arguments import callable_of
from envdoctor.upgrading.breaks import Break
from envdoctor.upgrading.judging import Judge
from envdoctor.upgrading.uses import Kind, Place, Use

_SCRIPT = re.compile(r"(?<![\w-])(\w[\w-]{0,80}\.py)(?!\S)")
_OPTION = re.compile(r"(?<!\S)--([a-zA-Z][\w-]{2,60})")


class Script(NamedTuple):
    """What a script takes on its command line: its own fields, and those of classes by their paths."""

    own: frozenset[str]
    classes: tuple[str, ...]


def parsed_by(text: str) -> Script | None:
    """Return what a script parses its options into (`HfArgumentParser((A, B))`); None where nothing tells."""
    if "Parser(" not in text:
        return None
    try:
        nodes = list(ast.walk(parse_python(text)))
    except SyntaxError:
        return None
    imported = dict(_imported(nodes))
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    asked = [name for node in nodes if isinstance(node, ast.Call) for name in _parsed(node)]
    own, found = set[str](), list[str]()
    for name in asked:
        if (node := classes.get(name)) is not None:
            fields = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
            own |= {field.id for field in fields if isinstance(field, ast.Name)}
            asked += [base for base in map(ast.unparse, node.bases) if base not in asked]
        elif (head := name.partition("."))[0] in imported:
            found.append(f"{imported[head[0]]}{head[1]}{head[2]}")
    return Script(frozenset(own), tuple(found)) if found else None


def _imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)


def _parsed(call: ast.Call) -> Iterator[str]:
    """Yield the names of the classes that a parser is made of."""
    if call.args and ast.unparse(call.func).endswith("Parser"):
        given = call.args[0]
        parts = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
        yield from (ast.unparse(part) for part in parts if isinstance(part, (ast.Name, ast.Attribute)))


def judge_launches(judge: Judge, scripts: Mapping[str, Script], text: str) -> Iterator[Break]:
    """Yield the options that no class of a started script takes any more, of those that one took."""
    for name, place, script in _given(text, scripts):
        uses = [Use(Kind.KEYWORD, path, place, name) for path in script.classes]
        if name not in script.own and not any(_takes(judge, path, name) for path in script.classes):
            yield from [*judge.breaks(uses)][:1]


def _takes(judge: Judge, path: str, name: str) -> bool:
    """True for a class whose new release takes an argument by name."""
    library = judge.library(path)
    move, record = judge.moves.get(library), load_record(judge.matrix.folder, library)
    return bool(move and record and record.has(callable_of(record, path)[1].get(name, ()), move.new))


def _given(text: str, scripts: Mapping[str, Script]) -> Iterator[tuple[str, Place, Script]]:
    """Yield the options of each command that starts one of the scripts; it goes on after a backslash."""
    script: Script | None = None
    goes_on = False
    for number, line in enumerate(text.split("\n"), 1):
        started = _SCRIPT.search(line)
        if started or not (goes_on or line.lstrip()[:1] == "-"):
            script = scripts.get(started[1]) if started else None
        options = _OPTION.finditer(line, started.end() if started else 0)
        if script is not None:
            yield from (
                (m[1].replace("-", "_"), Place(number, m.start(1), m.end(1)), script) for m in options
            )
        goes_on = line.rstrip()[-1:] == "\\"
