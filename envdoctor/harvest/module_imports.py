"""What a module imports and asks for whenever it is imported, and which names it has, by its syntax alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from envdoctor.harvest.generated_files import made_by
from envdoctor.harvest.import_conditions import AND, IF, conditions_of, is_for_types
from envdoctor.harvest.outlines import parse_outline
from envdoctor.python_source import parse_python
from envdoctor.values import NamedTuple

_MAKING = (b"__getattr__", b"sys.modules[", b"globals()", b"setattr(", b"exec(", b"vars()", b"lazy")
_MADE_UP = re.compile(rb"__getattr__|sys\.modules\[|\bglobals\(\)|\bsetattr\(|\bexec\(|\bvars\(\)|lazy")
"""In a module that may have more names than its syntax binds, in small letters."""
_ENDS = re.compile(rb"endswith\(['\"](\w{0,60})\.py['\"]\)")
"""How the files end that are imported by names put together."""
_ENDING = frozenset(("sys.exit", "exit", "quit", "os._exit"))


class Taken(NamedTuple):
    """One import: the line, the module, and the name that is taken from it ("": the module itself).

    `*_model`: all modules of that folder whose names end so. `when`: the condition under which it is met.
    """

    line: int
    module: str
    name: str = ""
    when: str = ""


class ModuleImports(NamedTuple):
    """`taken` runs whenever the module does; `used` are names of what it took that it asks for then.

    `names` are those that it binds, each with the module where it stands, if it is brought only when it is
    asked for, and the condition under which it is (`pkg.training if torch`). `open_`: there may be names
    beside these.
    """

    taken: tuple[Taken, ...]
    names: dict[str, str]
    open_: bool
    used: tuple[Taken, ...] = ()
    made: tuple[tuple[str, str], ...] = ()
    """The generators that wrote it, each with its version."""
    asked: tuple[Taken, ...] = ()
    """What it imports when a name is asked for that it does not bind."""
    stars: tuple[str, ...] = ()
    """The modules of which it takes all names, where all that it has beside `names` comes from there."""

    def as_json(self) -> list[Any]:
        """Return the parts as lists."""
        parts = (self.taken, self.used, self.made, self.asked)
        taken, used, made, asked = (list(map(list, part)) for part in parts)
        return [taken, self.names, self.open_, used, made, asked, list(self.stars)]


def parse_kept(told: list[Any]) -> ModuleImports:
    """Return what `as_json` wrote; raises TypeError or ValueError for what it did not write."""
    taken, names, open_, used, made, asked, stars = told
    imports, uses, late = (tuple(Taken(*one) for one in part) for part in (taken, used, asked))
    written = tuple((str(by), str(version)) for by, version in made)
    return ModuleImports(imports, dict(names), bool(open_), uses, written, late, tuple(map(str, stars)))


def imports_of(module: str, package: bool, source: bytes) -> ModuleImports | None:
    """Return what a file tells; None for one that is no Python of today."""
    try:
        body = parse_outline(source).body
    except SyntaxError:
        return None
    here = module.split(".") if package else module.split(".")[:-1]
    bound, stars = dict[str, str](), list[str]()
    for node, typed in _flat(body):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            stars.append(_source_of(node, here))
        lazily = _source_of(node, here) if typed is not None and isinstance(node, ast.ImportFrom) else ""
        for name in _bound(node) if typed is None or lazily else ():
            bound.setdefault(name, IF.join(filter(None, (lazily, typed))))
    asking = list(_asking(source)) if b"\ndef __getattr__(" in source else []
    for name, module in _answered(asking, here):
        bound.setdefault(name, module)
    taken = tuple(_imports(body, here))
    if b"import_module(" in source:
        taken += tuple(_made_up(body, source))
    used = dict.fromkeys(_used(body))
    made_up = _makes_names(source.lower())
    asked = tuple(_imports(asking, here))
    open_, alone = made_up or bool(stars), () if made_up else tuple(stars)
    return ModuleImports(taken, bound, open_, tuple(used), tuple(made_by(source)), asked, alone)


def _imports(body: Iterable[ast.stmt], here: list[str]) -> Iterator[Taken]:
    for node, when in _unguarded(body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (one._replace(when=when) for one in _taken(node, here))


def _asking(source: bytes) -> Iterator[ast.stmt]:
    """Yield the statements that run when a name is asked for that a module does not bind."""
    for node in parse_python(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            yield from node.body


def _answered(asking: Sequence[ast.stmt], here: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names that are imported when they are asked for, each with its module.

    `if name == "Chat": from other import Chat`, whichever variable holds the name that is asked for.
    """
    for node in (one for statement in asking for one in ast.walk(statement) if isinstance(one, ast.If)):
        match node.test:
            case ast.Compare(left=ast.Name(), ops=[ast.Eq()], comparators=[ast.Constant(value=str(name))]):
                for one in node.body:
                    if isinstance(one, ast.ImportFrom) and name in {alias.name for alias in one.names}:
                        yield name, _source_of(one, here)
            case _:
                pass


def _makes_names(source: bytes) -> bool:
    # looking for each word takes a tenth of the pattern's time, and hardly a module has one
    return any(word in source for word in _MAKING) and _MADE_UP.search(source) is not None


def top_imports(source: str) -> Iterator[Taken]:
    """Yield what a script imports by whole names whenever it runs; nothing for what is no Python."""
    try:
        body = parse_python(source).body
    except SyntaxError:
        return
    for node, when in _unguarded(body):
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level):
            yield from (one._replace(when=when) for one in _taken(node, []))


def _flat(body: Iterable[ast.stmt], typed: str | None = None) -> Iterator[tuple[ast.stmt, str | None]]:
    """Yield a module's statements, those in blocks too, each with the condition under which it is brought.

    That is when what stands there for types alone is asked for; None for what does not stand there for types.
    """
    for node in body:
        if isinstance(node, ast.If):
            if is_for_types(node.test):
                yield from _flat(node.body, typed or "")
                yield from _flat(node.orelse, typed)
            else:
                yield from _flat(node.body, _under(conditions_of(node.test)[0], typed))
                yield from _flat(node.orelse, _under(conditions_of(node.test)[1], typed))
        elif isinstance(node, ast.Try):
            # What is imported for types within a question may be another's when it is asked for.
            asked = node.body[0].test if isinstance(node.body[0], ast.If) else None
            present = conditions_of(asked)[1] if asked else ""
            yield from _flat(node.orelse, _under(present, typed) if present else None)
            handled = [one for handler in node.handlers for one in handler.body]
            yield from _flat([*node.body, *handled, *node.finalbody])
        elif isinstance(node, (ast.With, ast.For, ast.While)):
            yield node, typed
            yield from _flat(node.body, typed)
        else:
            yield node, typed


def _under(condition: str, typed: str | None) -> str | None:
    return typed if typed is None else AND.join(filter(None, (typed, condition)))


def _bound(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (one.asname or one.name.partition(".")[0] for one in names)
        case ast.Assign(targets=targets):
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.With(items=items):
            held = [item.optional_vars for item in items if item.optional_vars is not None]
            yield from (one.id for target in held for one in ast.walk(target) if isinstance(one, ast.Name))
        case _:
            for one in ast.walk(node):
                if isinstance(one, ast.NamedExpr):
                    yield one.target.id


def _unguarded(body: Iterable[ast.stmt], when: str = "") -> Iterator[tuple[ast.stmt, str]]:
    """Yield the statements that run whenever the module does, and whose failure is the module's.

    Each with the condition under which it does ("": always).
    """
    for node in body:
        if isinstance(node, (ast.Try, ast.With)):
            yield from () if _is_guarding(node) else _unguarded(node.body, when)
        elif isinstance(node, ast.If):
            for branch, asked in zip((node.body, node.orelse), conditions_of(node.test), strict=True):
                yield from _unguarded(branch, AND.join(filter(None, (when, asked)))) if asked else ()
        else:
            yield node, when


def _is_guarding(node: ast.Try | ast.With) -> bool:
    """True for what goes on where an import within it fails."""
    if isinstance(node, ast.With):
        return "suppress" in ast.unparse(node.items[0].context_expr)
    first = _imported(node.body)
    return not all(_fails(one.body) or (first and first == _imported(one.body)) for one in node.handlers)


def _imported(body: list[ast.stmt]) -> list[tuple[str | None, list[str]]]:
    """Return what statements import if they do nothing else, by whichever way: `.gen` is `gen`."""
    found = [
        (one.module, [name.name for name in one.names]) for one in body if isinstance(one, ast.ImportFrom)
    ]
    return found if len(found) == len(body) else []


def _fails(body: list[ast.stmt]) -> bool:
    """True for a handler that ends in an error, or ends the program."""
    last = body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return ast.unparse(last.value.func) in _ENDING
    return isinstance(last, ast.Raise)


def _used(body: Sequence[ast.stmt]) -> Iterator[Taken]:
    """Yield the names of imported modules that are asked for while the module runs, outside of functions."""
    bound = dict[str, str]()
    late = any(isinstance(one, ast.ImportFrom) and one.module == "__future__" for one in body[:8])
    for node, when in _unguarded(body):
        if isinstance(node, ast.Import):
            bound |= {o.asname or o.name.partition(".")[0]: o.name if o.asname else "" for o in node.names}
            continue
        for one in _running(node, late) if bound else ():
            path = _dotted(one)
            module = bound.get(path[0])
            if module is not None and len(path) > 1:
                path = [*module.split("."), *path[1:]] if module else path
                first = module.count(".") + 1 if module else 1
                yield from (
                    Taken(one.lineno, ".".join(path[:end]), path[end], when)
                    for end in range(first, len(path))
                )


def _running(node: ast.AST, late: bool) -> Iterator[ast.Attribute]:
    """Yield the attributes that a statement asks for as it runs; `late`: annotations are not evaluated."""
    inner: list[ast.AST | None]
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            arguments = [*node.args.args, *node.args.posonlyargs, *node.args.kwonlyargs]
            told = [] if late else [*(one.annotation for one in arguments), node.returns]
            inner = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults, *told]
        case ast.ClassDef():
            inner = [*node.decorator_list, *node.bases]
            inner += [one for one, when in _unguarded(node.body) if not when]
        case ast.AnnAssign():
            inner = [node.value, None if late else node.annotation]
        case ast.Attribute():
            yield node
            inner = [] if _dotted(node)[0] else [node.value]
        case ast.Constant() | ast.Name() | ast.expr_context():
            return
        case ast.IfExp() | ast.BoolOp() | ast.Lambda() | ast.If() | ast.For() | ast.While():
            return
        case _:
            inner = list(ast.iter_child_nodes(node))
    for one in inner:
        if one is not None:
            yield from _running(one, late)


def _dotted(node: ast.expr) -> list[str]:
    """Return the parts of a dotted name; the first is "" for one of something else."""
    parts = list[str]()
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *reversed(parts)]


def _taken(node: ast.Import | ast.ImportFrom, here: list[str]) -> Iterator[Taken]:
    if isinstance(node, ast.Import):
        yield from (Taken(node.lineno, one.name) for one in node.names)
    else:
        source = _source_of(node, here)
        yield from (Taken(node.lineno, source, one.name.replace("*", "")) for one in node.names if source)


def _made_up(body: Sequence[ast.stmt], source: bytes) -> Iterator[Taken]:
    """Yield the imports of all files of a folder, as registries do: the folder, and `*` with how they end."""
    ends = {found.decode() for found in _ENDS.findall(source)}
    for node, _ in _unguarded(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and one.args and ast.unparse(one.func).endswith("import_module"):
                folder = _start_of(one.args[0])
                yield from (Taken(one.lineno, folder[:-1], f"*{end}") for end in ends if folder[-1:] == ".")


def _start_of(text: ast.expr) -> str:
    """Return what a text that is put together begins with; "" where that is no text."""
    while isinstance(text, ast.BinOp):
        text = text.left
    first = text.values[0] if isinstance(text, ast.JoinedStr) and text.values else text
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _source_of(node: ast.ImportFrom, here: list[str]) -> str:
    base = here[: len(here) - node.level + 1] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])
