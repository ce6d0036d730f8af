"""What one Python file binds, exports, defines and asks for, by its syntax; nothing is imported or run."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

from envdoctor.harvest.served_names import MAKER, Served, makers_in, served_by
from envdoctor.python_source import parse_python

PLAIN_DECORATORS = frozenset(
    (
        *("staticmethod", "classmethod", "abstractmethod", "wraps", "contextmanager", "lru_cache", "cache"),
        *("no_grad", "inference_mode", "override", "final", "deprecated", "set_module"),
        *("auto_docstring", "add_start_docstrings", "add_end_docstrings", "replace_return_docstrings"),
        *("add_start_docstrings_to_model_forward", "add_code_sample_docstrings", "validate_hf_hub_args"),
        *("tf_export", "keras_export", "PublicAPI", "DeveloperAPI", "instrument_w_nvtx"),
    )
)
"""Decorators that leave a signature as it is written."""
_RENAMING = re.compile(r"deprecate|rename|legacy", re.IGNORECASE)
"""How decorators are called that still take an argument by a name of before, which they are told."""
_OF_NAMES = re.compile(r"(?:name|arg|argument|alternative|func|category)s?$")
"""How a decorator calls what it is told that is a name: none of them is one itself."""
POSITIONAL = "~"
"""Before a number: how many arguments may be given by position, at most."""
NEEDED = "!"
"""Before a parameter's name: it has no default."""
READ_ONLY = "="
"""Before a member's name: a property without a setter."""
OPEN = "**"
"""Among arguments: any more; among a class's members, or a module's names: more than a file tells."""
_SET = re.compile(
    r"(?:^[ \t]+|[:;][ \t]+)((?:self\.\w+[ \t]*,[ \t]*){0,12}self\.\w+)[ \t]*(?::[^=\n]{1,200})?=(?!=)",
    re.MULTILINE,
)
_POPPED = re.compile(r"\b(\w{1,60})\.(?:pop|get)\(\s{0,40}[\"'](\w{1,80})[\"']")
_PUTTING = re.compile(rb"\b(?:setattr|globals|vars)\b")
_LAZY = re.compile(rb"__getattr__|sys\.modules\[__name__\]|lazy", re.IGNORECASE)
"""In a file that brings names when they are asked for, which it may import for types alone."""
_VARIABLE = re.compile(
    rb"(?:environ(?:\.(?:get|pop|setdefault))?[\[(]|getenv\()\s{0,40}[\"']([A-Z][A-Z0-9_]{3,60})[\"']"
)
_LEAVES = frozenset((ast.Name, ast.Constant, ast.Load, ast.Store, ast.arg, ast.alias, ast.Pass))
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """One class: its bases as they are written, and its members."""

    bases: tuple[str, ...]
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """One module.

    `bound`: names to `module:name` where they are imported from the same package, to "" where they are its
    own. `listed`: `__all__`, None where it is not told plainly. `hidden`: True where names are made up when
    they are asked for. `keywords`: `callable:keyword`; `imports`: `module:name` of other packages, unguarded.
    `passed`: `method:keyword` of what classes give the methods that they call on `self`.
    """

    bound: MappingProxyType[str, str]
    stars: tuple[str, ...]
    listed: tuple[str, ...] | None
    hidden: bool
    spread: bool
    classes: MappingProxyType[str, ClassFacts]
    keywords: frozenset[str]
    imports: frozenset[str]
    passed: frozenset[str]
    variables: frozenset[str]
    """The environment variables that it names where it reads or sets them."""
    foreign: frozenset[str] = frozenset()
    """The names that are imported from other packages, and so may be imported from here."""
    maker: str = ""
    """Where the function stands, as `module:name`, that made what brings names when they are asked for."""
    served: frozenset[str] = frozenset()
    """The names that it brings only when they are asked for."""
    makers: Mapping[str, Served] = field(default_factory=dict)
    """What the module's own functions of that kind bring."""


def read_module(module: str, package: bool, source: bytes) -> ModuleFacts | None:
    """Return what a file tells; None for one that is no Python of today."""
    try:
        tree = parse_python(source)
    except SyntaxError:
        return None
    at_top = list(_flat(tree.body, typed=_LAZY.search(source) is not None))
    reader = _Names(module, package)
    for node in at_top:
        reader.read(node)
    served = served_by(at_top) if MAKER.encode() in source else None
    names = frozenset(name for name in served.names if name.isidentifier()) if served else frozenset()
    names -= reader.bound.keys()
    reader.bound |= dict.fromkeys(names, "")
    put_into = set(_put_into(at_top) if _PUTTING.search(source) else ())
    reader.bound |= {OPEN: ""} if "" in put_into or "*" in reader.foreign else {}
    lines = source.decode("utf-8", "replace").split("\n")
    classes = {node.name: _class_facts(node, lines) for node in at_top if isinstance(node, ast.ClassDef)}
    opened = {name: classes[name] for name in put_into & classes.keys()}
    classes |= {name: replace(told, members=told.members | {OPEN}) for name, told in opened.items()}
    return ModuleFacts(
        MappingProxyType(
            reader.bound | dict.fromkeys(_lazily_exported(tree), "")
            if package and b"_import_structure" in source
            else reader.bound
        ),
        tuple(dict.fromkeys(reader.stars)),
        _listed(at_top),
        MAKER in reader.bound and (served is None or served.more),
        package and b"define_import_structure(" in source,
        MappingProxyType(classes),
        frozenset(f"{owner}:{keyword}" for owner, keyword in _keywords(at_top, lines)),
        frozenset(_unguarded_imports(tree.body, module.partition(".")[0])),
        frozenset(given for node in at_top if isinstance(node, ast.ClassDef) for given in _passed(node)),
        frozenset(match[1].decode() for match in _VARIABLE.finditer(source)),
        frozenset(reader.foreign),
        reader.bound.get(served.maker, "") if served else "",
        names,
        makers_in(at_top) if b"AttributeError" in source else {},
    )


def with_stub(facts: ModuleFacts, stub: ModuleFacts) -> ModuleFacts:
    """Return what a file and its stub tell together."""
    classes = {
        name: ClassFacts(told.bases or stub.classes[name].bases, told.members | stub.classes[name].members)
        if name in stub.classes
        else told
        for name, told in facts.classes.items()
    }
    return replace(
        facts,
        bound=MappingProxyType({**stub.bound, **facts.bound}),
        stars=tuple(dict.fromkeys((*facts.stars, *stub.stars))),
        listed=facts.listed if facts.listed is not None else stub.listed,
        classes=MappingProxyType({**stub.classes, **classes}),
        keywords=facts.keywords | stub.keywords,
        foreign=facts.foreign | stub.foreign,
    )


def _flat(body: Iterable[ast.stmt], typed: bool = True) -> Iterator[ast.stmt]:
    """Yield a module's statements, those inside if, try and with too; those for types alone where `typed`."""
    for node in body:
        if isinstance(node, ast.If):
            for_types = _last_name(node.test) == "TYPE_CHECKING"
            yield from _flat([*(node.body if typed or not for_types else ()), *node.orelse], typed)
        elif isinstance(node, ast.Try):
            yield from _flat([*node.body, *node.orelse, *node.finalbody], typed)
            yield from _flat([one for handler in node.handlers for one in handler.body], typed)
        elif isinstance(node, ast.With):
            yield from _flat(node.body, typed)
        else:
            yield node


class _Names:
    """Collects the names that a module binds at its top level."""

    def __init__(self, module: str, package: bool) -> None:
        self._own = module.partition(".")[0]
        self._here = module.split(".") if package else module.split(".")[:-1]
        self.bound: dict[str, str] = {}
        self.stars: list[str] = []
        self.foreign: set[str] = set()

    def read(self, node: ast.stmt) -> None:
        """Take in one statement."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.bound[node.name] = ""
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                listed = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                self.bound.update((one.id, "") for one in listed if isinstance(one, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            self._read_from(node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname and alias.name.partition(".")[0] == self._own:
                    self.bound[alias.asname] = f"{alias.name}:"

    def _read_from(self, node: ast.ImportFrom) -> None:
        base = self._here[: len(self._here) - node.level + 1] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        if source.partition(".")[0] != self._own:
            self.foreign.update(alias.asname or alias.name for alias in node.names)
            return
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(source)
            else:
                self.bound[alias.asname or alias.name] = f"{source}:{alias.name}"


def _put_into(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield into what a module's loops put names that no file tells: a class; "" for the module itself."""
    own = {""}
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == "sys.modules[__name__]":
            own |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        defines = isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        )
        for one in () if defines else ast.walk(node):
            match one:
                case ast.Call(func=ast.Name(id="setattr"), args=[target, name, _]):
                    text = ast.unparse(target)
                    told = isinstance(name, ast.Constant)
                    yield from (
                        () if told else ("" if text in own or text == "sys.modules[__name__]" else text,)
                    )
                case ast.Subscript(value=ast.Call(func=ast.Name(id="globals" | "vars")), ctx=ast.Store()):
                    yield from () if isinstance(one.slice, ast.Constant) else ("",)
                case ast.Call(
                    func=ast.Attribute(value=ast.Call(func=ast.Name(id="globals" | "vars")), attr="update")
                ):
                    yield ""
                case _:
                    pass


def _listed(body: Iterable[ast.stmt]) -> tuple[str, ...] | None:
    found: list[str] | None = None
    for node in body:
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]:
            found = _literal_names(node.value)
            if found is None:
                return None
        elif isinstance(node, ast.AugAssign) and ast.unparse(node.target) == "__all__":
            more = _literal_names(node.value)
            if found is None or more is None:
                return None
            found += more
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func).startswith("__all__")
        ):
            return None
    return None if found is None else tuple(found)


def _literal_names(node: ast.expr) -> list[str] | None:
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None
    if not all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in node.elts):
        return None
    return [one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _class_facts(node: ast.ClassDef, lines: Sequence[str]) -> ClassFacts:
    members = set(_set_on_self("\n".join(lines[node.lineno - 1 : node.end_lineno])))
    getters: set[str] = set()
    setters: set[str] = set()
    for member in _flat(node.body):
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
            members.add(member.name)
            decorators = [_last_name(d) for d in member.decorator_list]
            getters.update([member.name] if "property" in decorators else ())
            setters.update([member.name] if "setter" in decorators else ())
        elif isinstance(member, ast.ClassDef):
            members.add(member.name)
        elif isinstance(member, (ast.Assign, ast.AnnAssign)):
            targets = member.targets if isinstance(member, ast.Assign) else [member.target]
            members.update(target.id for target in targets if isinstance(target, ast.Name))
    members.update(f"{READ_ONLY}{name}" for name in getters - setters)
    members.update((OPEN,) if any(map(_is_handed_more, node.decorator_list)) else ())
    return ClassFacts(tuple(map(_base, node.bases)), frozenset(members))


def _is_handed_more(decorator: ast.expr) -> bool:
    """True for a class's decorator that is given more than constants: it may put members into the class."""
    if not isinstance(decorator, ast.Call) or _last_name(decorator) in PLAIN_DECORATORS:
        return False
    parts = (part for given in decorator.args for part in getattr(given, "elts", (given,)))
    return not all(isinstance(part, ast.Constant) for part in parts)


def _base(node: ast.expr) -> str:
    """Return a base as it is written, without what it is parametrised by."""
    return _dotted(node.value if isinstance(node, ast.Subscript) else node) or ast.unparse(node)


def _set_on_self(source: str) -> Iterator[str]:
    """Yield the attributes that a class's text sets on `self`; a search is far cheaper than a walk."""
    for match in _SET.finditer(source):
        yield from (part.strip().removeprefix("self.") for part in match[1].split(","))


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _last_name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _unguarded_imports(body: Iterable[ast.stmt], own: str) -> Iterator[str]:
    """`module:name` of each import from another package that runs whenever the module does."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if _is_foreign(node.module, own):
                yield from (f"{node.module}:{alias.name}" for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.Import):
            yield from (f"{a.name}:" for a in node.names if "." in a.name and _is_foreign(a.name, own))


def _is_foreign(module: str, own: str) -> bool:
    root = module.partition(".")[0]
    return root != own and root not in sys.stdlib_module_names


def _lazily_exported(tree: ast.Module) -> Iterator[str]:
    """Names in an `_import_structure` of lists of strings, however it is filled."""
    for node in ast.walk(tree):
        target = _assigned(node)
        if target is not None and "_import_structure" in ast.dump(target):
            value = getattr(node, "value", None)
            if isinstance(value, (ast.Dict, ast.List)):
                yield from _strings(value)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend")
            and "_import_structure" in ast.dump(node.func.value)
        ):
            for argument in node.args:
                yield from _strings(argument)


def _assigned(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Assign):
        return node.targets[0]
    return node.target if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else None


def _strings(value: ast.AST) -> Iterator[str]:
    lists = value.values if isinstance(value, ast.Dict) else [value]
    for item in lists:
        for node in ast.walk(item):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                yield node.value


def _keywords(body: Iterable[ast.stmt], lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Keyword arguments of functions, of methods, and of dataclasses by their fields."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from ((node.name, told) for told in _signature(node, 0, lines))
        elif isinstance(node, ast.ClassDef):
            yield from _class_keywords(node, lines)


def _class_keywords(node: ast.ClassDef, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for member in _flat(node.body):
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
            bound = 0 if any(_last_name(d) == "staticmethod" for d in member.decorator_list) else 1
            yield from ((f"{node.name}.{member.name}", told) for told in _signature(member, bound, lines))
        elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            yield f"{node.name}.__init__", member.target.id


def _passed(node: ast.ClassDef) -> Iterator[str]:
    """Yield what a class's methods give those that they call on `self`, which a subclass may override."""
    for call in _calls(node):
        if not (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)):
            continue
        if call.func.value.id == "self":
            yield from (f"{call.func.attr}:{told.arg}" for told in call.keywords if told.arg)
            if not any(isinstance(one, ast.Starred) for one in call.args):
                yield f"{call.func.attr}:{POSITIONAL}{len(call.args)}"


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls below a node: of a name or a constant nothing stands below."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Call):
            yield one
        for name in one._fields:
            value = getattr(one, name, None)
            parts = value if isinstance(value, list) else (value,)
            waiting += [p for p in parts if isinstance(p, ast.AST) and type(p) not in _LEAVES]


def _signature(node: _Function, bound: int, lines: Sequence[str]) -> Iterator[str]:
    """Yield a function's keywords, and how many arguments it takes by position and needs."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for argument in (*arguments.args, *arguments.kwonlyargs):
        if argument.arg not in ("self", "cls"):
            yield argument.arg
    if arguments.kwarg:
        yield OPEN
        yield from _taken_out(arguments.kwarg.arg, "\n".join(lines[node.lineno - 1 : node.end_lineno]))
    former = [list(_former_names(decorator)) for decorator in node.decorator_list]
    kept = [name for names in former for name in names]
    yield from kept
    decorated = zip(node.decorator_list, former, strict=True)
    if any(_last_name(d) not in PLAIN_DECORATORS and not names for d, names in decorated):
        return
    if not arguments.vararg:
        yield f"{POSITIONAL}{max(len(positional) - bound, 0)}"
    needed = positional[bound : len(positional) - len(arguments.defaults)]
    needed += [a for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None]
    yield from (f"{NEEDED}{argument.arg}" for argument in needed if argument.arg not in kept)


def _former_names(decorator: ast.expr) -> Iterator[str]:
    """Yield the names by which a decorator still takes arguments that are called otherwise now, and these.

    They are what it is given, alone or in a list, and how it calls one; not what it calls names themselves.
    """
    if isinstance(decorator, ast.Call) and _RENAMING.search(_last_name(decorator)):
        named = [k for k in decorator.keywords if k.arg not in ("version", "new_name")]
        given = chain.from_iterable(map(_parts, (*decorator.args, *(k.value for k in named))))
        yield from filter(None, map(_name_in, given))
        yield from (k.arg for k in named if k.arg and _name_in(k.value) and not _OF_NAMES.search(k.arg))


def _name_in(node: ast.expr | None) -> str:
    match node:
        case ast.Constant(value=str(text)) if text.isidentifier() and text != "self":
            return text
        case _:
            return ""


def _parts(node: ast.expr) -> Iterator[ast.expr | None]:
    match node:
        case ast.List(elts=some) | ast.Tuple(elts=some) | ast.Set(elts=some):
            yield from some
        case ast.Dict(keys=keys, values=values):
            yield from (*keys, *values)
        case _:
            yield node


def _taken_out(kwargs: str, source: str) -> Iterator[str]:
    """Yield the keywords that a function takes out of its `**kwargs` by name."""
    yield from (match[2] for match in _POPPED.finditer(source) if match[1] == kwargs)
