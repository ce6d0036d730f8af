"""What names stand for in a text: dotted paths, instances of classes, dictionaries of known keys."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain

from envdoctor.rules.interface_lookup import DISTINCT
from envdoctor.upgrading.uses import Condition, Place
from envdoctor.values import NamedTuple, dataclass

_AUTO = (
    ("AutoConfig", "PreTrainedConfig"),
    ("AutoTokenizer", "PreTrainedTokenizerBase"),
    ("AutoModel", "PreTrainedModel"),
)
"""What `from_pretrained` of transformers' classes that choose by the checkpoint brings, at least."""


class Key(NamedTuple):
    """A known key of a dictionary: its name, where it stands, and `name=value` as `valued` gives it."""

    name: str
    place: Place
    value: str


@dataclass(frozen=True, slots=True)
class Bound:
    """What a name stands for: a dotted path, an instance of the class at that path, or known keys."""

    path: str = ""
    instance: bool = False
    attributes: dict[str, Bound] | None = None
    """What was set on an instance of a class of the text."""
    own: frozenset[str] = frozenset()
    """Members that a subclass in the text defines itself."""
    keys: tuple[Key, ...] | None = None
    member: bool = False
    """True for a member of an instance: what it has itself nothing tells."""
    taken: frozenset[str] = frozenset()
    """Arguments that a subclass in the text takes itself and does not hand on to its base."""
    plain: bool = False
    """True for a class of the text that derives from no library's."""
    closed: bool = False
    """True for a subclass whose own `__init__` takes what it is made of."""
    open: bool = False
    """True for a subclass of several, or of what is not known: members may come from there."""
    condition: Condition | None = None
    """The question about a release that a name answers."""
    element: Bound | None = None
    """What each element of a list stands for; unknown of an empty one."""
    answer: Bound | None = None
    """What a call of a function of the text yields, as its annotation tells."""


UNKNOWN = Bound()
ANY = 1 << 16
"""Arguments by position of what takes any number of them."""
_OF_ARRAYS = frozenset(("itemset", "ptp"))
"""Short names of methods that arrays alone have."""
_NO_LISTS = frozenset(("append",))
"""Short names of methods that lists have, too: what these do not answer is no list's."""
_OWN_ANSWER = frozenset(
    ("to", "cuda", "cpu", "half", "float", "bfloat16", "double", "eval", "train", "requires_grad_")
)
"""Methods of a module of torch that answer with the module."""
_BY_PATH = frozenset(("patch", "setattr", "delattr", "import_module"))
"""Functions that take the path of what they put something in the place of, or load, as a text."""
_HELD = re.compile(r"[a-z]{2,30}_(?:config|args|params|options|settings)")
_CONFIGURED = re.compile(r"(\w{2,60}?)(?:PreTrained)?(?:Model|For[A-Z]\w{2,60})")
_LISTS = frozenset(("list", "List", "Sequence", "Iterable", "Iterator", "Generator"))
Scope = dict[str, Bound]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def place_of(node: ast.stmt) -> Place:
    """Return the lines of a statement."""
    return Place(node.lineno, node.col_offset, node.end_lineno or node.lineno)


def span_of(node: ast.expr) -> Place:
    """Return where an expression stands, up to its end's column."""
    return Place(node.lineno, node.col_offset, node.end_col_offset or 0)


def member_place(node: ast.Attribute) -> Place:
    """Return where an attribute's name stands."""
    end = node.end_col_offset or 0
    return Place(node.end_lineno or node.lineno, end - len(node.attr.encode()), end)


def alias_place(alias: ast.alias) -> Place:
    """Return where the name that is imported stands."""
    return Place(alias.lineno, alias.col_offset, alias.col_offset + len(alias.name.encode()))


def keyword_place(node: ast.keyword) -> Place:
    """Return where a keyword's name stands."""
    return Place(node.lineno, node.col_offset, node.col_offset + len((node.arg or "").encode()))


def caught_by(handler: ast.ExceptHandler) -> list[str]:
    """Return the exceptions that a handler cares for, as written; an empty name for all."""
    if handler.type is None:
        return [""]
    listed = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [ast.unparse(one) for one in listed]


def last_names(node: ast.expr) -> Iterator[str]:
    """Yield the last names of what an expression is reached through: `x.dtype` and `dtype(x)`."""
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, (ast.Attribute, ast.Name)):
        yield node.attr if isinstance(node, ast.Attribute) else node.id


def of_base(node: ast.Attribute) -> bool:
    """True for what `super()` is asked for."""
    made = node.value
    return isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "super"


def is_distinct(method: ast.Attribute, answers: bool) -> bool:
    """True for a method whose name tells whose it is, or what it `answers`; dtypes have a `newbyteorder`."""
    of_dtype = any("dtype" in text for text in last_names(method.value))
    telling = method.attr in _OF_ARRAYS or (answers and method.attr in _NO_LISTS)
    return (len(method.attr) >= DISTINCT or telling) and not of_dtype


def paths_in(node: ast.Call) -> Iterator[tuple[str, Place]]:
    """Yield the path that a call is given as a text, to put something in place of or to load, by parts."""
    first = node.args[0] if node.args else None
    if next(last_names(node.func), "") not in _BY_PATH or not isinstance(first, ast.Constant):
        return
    parts = first.value.split(".") if isinstance(first.value, str) else []
    if len(parts) > 1 and all(part.isidentifier() for part in parts):
        place = Place(first.lineno, first.col_offset + 1, (first.end_col_offset or 0) - 1)
        yield from ((".".join(parts[:end]), place) for end in range(2, len(parts) + 1))


def valued(name: str, value: ast.expr) -> str:
    """Return `name=value` for what is given a constant, `name=?` for what only a run would tell."""
    return f"{name}={value.value!r}" if isinstance(value, ast.Constant) else f"{name}=?"


def literal_keys(node: ast.Dict) -> tuple[Key, ...] | None:
    """Return the keys of a literal; None where a key is not plain."""
    found = [key_of(key, value) for key, value in zip(node.keys, node.values, strict=True)]
    return None if None in found else tuple(key for key in found if key)


def key_of(key: ast.expr | None, value: ast.expr) -> Key | None:
    """Return a plain key; its place is inside of the quotes."""
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        return None
    start = key.col_offset + 1
    plain = (key.end_col_offset or 0) - key.col_offset == len(key.value.encode()) + 2
    place = Place(key.lineno, start, start + len(key.value.encode()) if plain else start)
    return Key(key.value, place, valued(key.value, value))


def filtered(node: ast.expr) -> ast.expr | None:
    """Return the dictionary of which some entries are kept: `{k: v for k, v in it.items() if ...}`."""
    match node:
        case ast.DictComp(
            key=ast.Name(id=key),
            generators=[
                ast.comprehension(
                    target=ast.Tuple(elts=[ast.Name(id=first), _]),
                    iter=ast.Call(func=ast.Attribute(value=kept, attr="items"), args=[]),
                )
            ],
        ) if key == first:
            return kept
        case _:
            return None


def own_members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names that a class's text defines: what its statements, the inner ones too, bind."""
    yield node.name
    waiting: list[ast.AST] = list(node.body)
    while waiting:  # statements alone: expressions are most of a tree, and bind no member
        inner = waiting.pop()
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield inner.name
        elif isinstance(inner, ast.Assign):
            yield from chain.from_iterable(map(_stored, inner.targets))
        elif isinstance(inner, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
            yield from _stored(inner.target)
        elif isinstance(inner, (ast.With, ast.AsyncWith)):
            yield from chain.from_iterable(_stored(one.optional_vars) for one in inner.items)
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            waiting.extend(getattr(inner, part, ()))


def _stored(target: ast.expr | None) -> Iterator[str]:
    """Yield the names and attributes that a target binds."""
    match target:
        case ast.Name():
            yield target.id
        case ast.Attribute():
            yield target.attr
        case ast.Tuple() | ast.List():
            yield from chain.from_iterable(map(_stored, target.elts))
        case ast.Starred():
            yield from _stored(target.value)
        case _:
            return


def called_on_self(method: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return the methods that a method calls on `self`, as `name()`."""
    calls = (call.func for call in ast.walk(method) if isinstance(call, ast.Call))
    return frozenset(
        f"{func.attr}()"
        for func in calls
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
    )


def written_past(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Place]:
    """Yield where a method writes into the `data` of a tensor of what its argument holds.

    Of a part that has a weight itself its loader knows: such a part is not made again.
    """
    calls = (node.func for node in ast.walk(method) if isinstance(node, ast.Call))
    for call in (one for one in calls if isinstance(one, ast.Attribute) and one.attr[-1:] == "_"):
        _, *path = ast.unparse(call.value).split(".")
        if path[-1:] == ["data"] and path not in (["weight", "data"], ["bias", "data"]):
            yield member_place(call)


def listed_in(node: ast.ClassDef) -> Iterator[tuple[str, Place]]:
    """Yield the names that a class's body gives a list, with their places."""
    for inner in node.body:
        if isinstance(inner, (ast.Assign, ast.AnnAssign)) and isinstance(inner.value, (ast.List, ast.Tuple)):
            for target in inner.targets if isinstance(inner, ast.Assign) else (inner.target,):
                yield from ((name, place_of(inner)) for name in _stored(target))


def fields_in(node: ast.ClassDef) -> Iterator[tuple[str, Place]]:
    """Yield the fields of a class's body that a library reads in its own way, with their places.

    `name(field)` for a name between underscores, `name(class)` for a class, `name(key)` for what that one's
    body sets; one without default that may be None is told by its None, a value without an annotation by
    that.
    """
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            if inner.target.id[:2] == "__":
                yield f"{inner.target.id}(field)", place_of(inner)
            elif _is_optional(inner.annotation) and not _has_default(inner.value):
                yield "the None of a field without default", place_of(inner)
        elif isinstance(inner, ast.ClassDef):
            yield f"{inner.name}(class)", place_of(inner)
            keys = (one for one in inner.body if isinstance(one, ast.Assign))
            yield from ((f"{name}(key)", place_of(one)) for one in keys for name in _stored(one.targets[0]))
        elif isinstance(inner, ast.Assign) and _is_value(inner.value):
            names = (target.id for target in inner.targets if isinstance(target, ast.Name))
            if any(name[:1] != "_" and not name.startswith("model_") for name in names):
                yield "a field without annotation", place_of(inner)


def _is_value(node: ast.expr) -> bool:
    """True for a constant, a literal of several, or a `Field(...)`."""
    plain = isinstance(node, (ast.Constant, ast.List, ast.Dict, ast.Tuple, ast.Set, ast.UnaryOp))
    return plain or (isinstance(node, ast.Call) and next(last_names(node.func), "") == "Field")


def _is_optional(node: ast.expr) -> bool:
    match node:
        case ast.Subscript(value=told):
            return next(last_names(told), "") == "Optional"
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _is_none(right) or _is_none(left) or _is_optional(left)
        case _:
            return False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _has_default(value: ast.expr | None) -> bool:
    """True for a value, also that which a `Field(...)` is given."""
    if not (isinstance(value, ast.Call) and next(last_names(value.func), "") == "Field"):
        return value is not None
    first = value.args[0] if value.args else None
    told = not (isinstance(first, ast.Constant) and first.value is ...) if first is not None else False
    return told or any(k.arg in (None, "default", "default_factory") for k in value.keywords)


def sets_on_self(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for a method that puts something on what it is called on."""
    return any(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) for node in ast.walk(method)
    )


def options_of(node: ast.Call) -> Iterator[str]:
    """Yield the names that a parser of a command's own options puts on its answer."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
        for told in node.args:
            if isinstance(told, ast.Constant) and isinstance(told.value, str) and told.value[:2] == "--":
                yield told.value[2:].replace("-", "_")


def fields_of(node: ast.ClassDef) -> Iterator[str]:
    """Yield the fields that a class declares in its body."""
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            yield inner.target.id


def handed_up(node: ast.ClassDef) -> frozenset[str] | None:
    """Return the arguments that a class's own `__init__` keeps; None where it does not hand on the rest."""
    own = next((f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
    if own is None:
        return frozenset()
    if own.args.kwarg is None:
        return None
    rest = own.args.kwarg.arg
    calls = (call for call in ast.walk(own) if isinstance(call, ast.Call))
    handed = any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "__init__"
        and any(k.arg is None and isinstance(k.value, ast.Name) and k.value.id == rest for k in call.keywords)
        for call in calls
    )
    return frozenset(argument.arg for argument in named_in(own.args)) if handed else None


def made_by(called: Bound) -> Bound:
    """Return what a call yields: an instance of a class, also through `from_pretrained`."""
    path = called.path
    owner, _, last = path.rpartition(".")
    if last in ("from_pretrained", "from_config") and is_class(owner.rpartition(".")[2]):
        named = owner.rpartition(".")[2] if owner.startswith("transformers.") else ""
        chosen = next((base for auto, base in _AUTO if named.startswith(auto)), "")
        if chosen:
            return Bound(f"transformers.{chosen}", True)
        return UNKNOWN if owner.rpartition(".")[2].startswith("Auto") else Bound(owner, True)
    if called.member and last in _OWN_ANSWER:
        return Bound(owner, True)
    if not is_class(last) or called.open:
        return instance_of_text(called)
    return Bound(path, True, called.attributes, called.own)


def instance_of_text(told: Bound) -> Bound:
    """Return an instance of a class of the text of which only that is known what it is given itself."""
    made = told.own and told.attributes is not None and not told.instance
    return Bound(attributes=told.attributes, own=told.own) if made else UNKNOWN


def named_in(arguments: ast.arguments) -> list[ast.arg]:
    """Return the arguments that have a name of their own."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def needing(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the name, as `name(…)`, of a function that no call without any argument may mean."""
    own = function.args
    needed = [*own.posonlyargs, *own.args][: -len(own.defaults) or None]
    if any(one.arg not in ("self", "cls") for one in needed) or None in own.kw_defaults:
        yield f"{function.name}(…)"


def defaulted(arguments: ast.arguments) -> frozenset[str]:
    """Return the arguments that have a default, as `name=`."""
    positional = [*arguments.posonlyargs, *arguments.args]
    plain = positional[len(positional) - len(arguments.defaults) :]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return frozenset(f"{one.arg}=" for one in (*plain, *(a for a, default in named if default)))


def most_given(method: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many arguments a method takes by position, without what it is called on."""
    told = method.args
    static = any("staticmethod" in last_names(one) for one in method.decorator_list)
    return ANY if told.vararg else len(told.posonlyargs) + len(told.args) - (not static)


def looked_up(node: ast.expr, scopes: Sequence[Scope]) -> Bound:
    """Return what a plain dotted name stands for; nothing is noted as used."""
    if isinstance(node, ast.Name):
        return next((scope[node.id] for scope in reversed(scopes) if node.id in scope), UNKNOWN)
    if isinstance(node, ast.Attribute):
        base = looked_up(node.value, scopes)
        return Bound(f"{base.path}.{node.attr}") if base.path and not base.instance else UNKNOWN
    return UNKNOWN


def listed(node: ast.expr, scopes: Sequence[Scope]) -> Bound:
    """Return the list that a name is, or a call of what keeps its elements; nothing is noted as used."""
    match node:
        case ast.Call(func=ast.Name(id="sorted" | "reversed" | "list" | "tuple" | "set"), args=[told, *_]):
            return listed(told, scopes)
        case ast.Attribute(value=owner, attr=name):
            held = looked_up(owner, scopes).attributes or {}
            return held.get(name, UNKNOWN)
        case ast.Name():
            return looked_up(node, scopes)
        case _:
            return UNKNOWN


def calls_in(body: Sequence[ast.stmt], scopes: Sequence[Scope]) -> Iterator[str]:
    """Yield the path of each call in a body; of a method of what is not known its name, after a dot."""
    for call in (part for one in body for part in ast.walk(one) if isinstance(part, ast.Call)):
        path = looked_up(call.func, scopes).path
        if path or isinstance(call.func, ast.Attribute):
            yield path or f".{next(last_names(call.func))}"


def instance_of(annotation: ast.expr | None, scopes: Sequence[Scope]) -> Bound:
    """Return the instance that an annotation tells: `X`, `Optional[X]`, `X | None`, and as texts."""
    match annotation:
        case ast.Constant(value=str(text)):
            try:
                return instance_of(ast.parse(text, mode="eval").body, scopes)
            except SyntaxError:
                return UNKNOWN
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return instance_of(inner, scopes)
        case ast.Subscript(value=ast.Name(id=listed), slice=inner) if listed in _LISTS:
            return Bound(element=instance_of(inner, scopes))
        case ast.BinOp(op=ast.BitOr(), left=left, right=ast.Constant(value=None)):
            return instance_of(left, scopes)
        case ast.Name() | ast.Attribute():
            told = looked_up(annotation, scopes)
            plain = told.path and not told.instance and is_class(told.path.rpartition(".")[2])
            known = plain and not told.open and told.path.partition(".")[0] != "typing"
            return Bound(told.path, True, told.attributes, told.own) if known else instance_of_text(told)
        case _:
            return UNKNOWN


def annotated_in(node: ast.ClassDef, scopes: Sequence[Scope]) -> dict[str, Bound]:
    """Return the fields that a class's body declares to be instances."""
    told = (
        (one.target.id, instance_of(one.annotation, scopes))
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    )
    return {name: bound for name, bound in told if bound.path}


def answering(function: Function, scopes: Sequence[Scope]) -> Bound:
    """Return what a function of the text stands for by its annotation: a property for what it yields."""
    answer = instance_of(function.returns, scopes)
    if answer is UNKNOWN:
        return UNKNOWN
    kinds = {next(last_names(one), "") for one in function.decorator_list}
    if kinds & {"property", "cached_property"}:
        return answer
    return Bound(answer=answer) if kinds <= {"staticmethod", "classmethod", "abstractmethod"} else UNKNOWN


def either(one: Bound, other: Bound) -> Bound:
    """Return what a choice of two stands for: subclasses of one class are that class."""
    if one.path != other.path or one.instance != other.instance:
        return UNKNOWN
    return replace(one, own=one.own | other.own, taken=one.taken | other.taken)


def all_of(elements: Sequence[Bound]) -> Bound:
    """Return a list of these elements."""
    return Bound(element=reduce(either, elements) if elements else UNKNOWN)


def with_element(known: Bound, element: Bound) -> Bound:
    """Return a list of known elements to which one more is added."""
    return Bound(element=element if known.element is UNKNOWN else either(known.element or UNKNOWN, element))


def named_after(path: str) -> str:
    """Return the class of settings that a member is named after: `model_config` holds a ModelConfig.

    A Trainer's `args` are the arguments of its library's training, a model's `config` is called as it is.
    """
    owner, _, name = path.rpartition(".")
    model = _CONFIGURED.fullmatch(owner.rpartition(".")[2]) if name == "config" else None
    if model and owner.startswith("transformers."):
        return f"transformers.{model[1]}Config"
    if name == "args" and owner.endswith("Trainer"):
        return "transformers.TrainingArguments"
    return f"{path.partition('.')[0]}.{name.title().replace('_', '')}" if _HELD.fullmatch(name) else ""


def is_class(name: str) -> bool:
    """True for a name that is written as classes are, or an acronym as constants may be, too."""
    return name[:1].isupper() and not (name.isupper() and "_" in name)
