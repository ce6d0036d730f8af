"""The condition under which a library stops, in plain words: from its source to what holds here.

A condition is read as Python and said term by term: what is not set, what is below what, which package is
missing, which compute capability is asked for. What follows from a term alone is offered as a way out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import chain

from envdoctor import lazy_re as re
from envdoctor.commands import ANY, commands, install_commands, pip_install
from envdoctor.findings import Evidence, Remedy
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.guard_facts import SEES_GPU, dtypes_in, known_of, variable_of
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.messages import distinct
from envdoctor.rules.not_seen import ways_to_cuda
from envdoctor.rules.ranges import parse_version, version_satisfies
from envdoctor.rules.view import View
from envdoctor.values import dataclass, replace

MOST = 3
"""Terms that are told, the innermost: the outer ones lead to the place, the last ones decide."""
_SHOWN = 90
_CUT = "…"
_OWN = frozenset({"self", "cls"})
_GIVEN = re.compile(r"(?:\w+_)?(?:args|kwargs|cfg|config|data)")
"""How that is called which holds what a user gives: arguments and settings."""
_SETTINGS = re.compile(r"Config|Arg|Param|Setting|Option|Input|Schema|validat|check_|__post_init__")
"""How classes and functions are called that hold what a user gives."""
_AVAILABLE = re.compile(
    r"_*(?:is|has|have)_(\w{2,40}?)(?:_\d)?_(?:available|installed|greater_or_equal)|"
    r"_*(?:HAS|HAVE)_([A-Z0-9_]{2,40})|_*([A-Z0-9_]{2,40}?)_(?:AVAILABLE|INSTALLED)"
)
_IS_VERSION = re.compile(r"_*is_(\w{2,40}?)_version")
"""What asks how a package's release compares: `is_torch_version('>=', '2.3.0')`."""
_WORD = re.compile(r"\w{1,60}")
_SELF = re.compile(r"\b(?:self|cls)\.")
_VERSION = re.compile(r"'(\d{1,4}(?:\.\d{1,4}){1,3})'")
_VERSIONED = re.compile(
    r"version\('([\w-]{2,40})'\)|\b(\w{2,40})\.__version__|\b_?([A-Za-z]{2,40}?)_?version\b"
)
_CAPABLE = frozenset({"get_device_capability", "has_device_capability", "is_device_capability", "capability"})
_TOLD_CARD = re.compile(r"(?i)\bsm_?(\d{2,3})(?:\+| (?:and|or) (?:above|newer|later|higher|up)\b)")
"""The least card that a message names itself."""
_SWAPPED = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt}
_COMPARED = {ast.Lt: "is below", ast.GtE: "is at least", ast.Gt: "is above", ast.LtE: "is at most"}
_OLDER = {ast.Lt: ">={}", ast.LtE: ">{}", ast.Gt: "<={}", ast.GtE: "<{}"}
_KNOWN_CALLS = {
    "exists": ("{} exists", "{} does not exist"),
    "isfile": ("{} is a file", "{} is no file"),
    "is_file": ("{} is a file", "{} is no file"),
    "isdir": ("{} is a folder", "{} is no folder"),
    "is_dir": ("{} is a folder", "{} is no folder"),
    "isfinite": ("{} is finite", "{} is not finite (NaN or infinite)"),
    "is_contiguous": ("{} is contiguous", "{} is not contiguous"),
    "is_cuda": ("{} is CUDA's", "{} is not CUDA's"),
    "is_initialized": ("{} is initialised", "{} is not initialised"),
    "is_floating_point": ("{} holds floating-point numbers", "{} holds no floating-point numbers"),
    "callable": ("{} can be called", "{} cannot be called"),
}
"""What a call asks of its argument (or of its owner), and how it is said either way."""
_PLACES = {
    "exists": "file or folder",
    "isfile": "file",
    "is_file": "file",
    "isdir": "folder",
    "is_dir": "folder",
}


@dataclass(frozen=True, slots=True)
class Said:
    """One term of a condition: its words, what would undo it, and what the facts show of it."""

    words: str
    ways: tuple[Remedy, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    of_machine: bool = False
    """True for a state of the machine that no release of the library changes."""
    holds: bool | None = None
    """What the facts say of it; None where they do not tell."""


def said_of(view: View, guard: str, message: str, function: str = "", library: str = "") -> tuple[Said, ...]:
    """Return what a condition says, its last terms; empty where it is cut off or no Python.

    `function`: where it stands; what a class of settings calls its own is given by the user. `library`: whose
    it is; what it asks for by its own name is a part of it, of which the facts do not tell.
    """
    try:
        tree = ast.parse(guard, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    terms = list(_terms(tree, holds=True))[-MOST:]
    speaker = _Speaker(view, message, bool(_SETTINGS.search(function)), library)
    told = [speaker.said(term, holds) for term, holds in terms if _is_told(term)]
    return tuple({one.words: one for one in told}.values())


def _is_told(term: ast.expr) -> bool:
    return not isinstance(term, ast.Constant)


def _terms(node: ast.expr, holds: bool) -> Iterator[tuple[ast.expr, bool]]:
    """Yield what must hold together; what merely may is one term, and of mixed ones the last alone.

    Conditions of nested blocks stand side by side without brackets, so that an `or` may belong to one.
    """
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node, holds = node.operand, not holds
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) == holds:
        yield from chain.from_iterable(_terms(value, holds) for value in node.values)
    elif isinstance(node, ast.BoolOp) and any(isinstance(value, ast.BoolOp) for value in node.values):
        last = node.values[-1]
        nested = isinstance(last, ast.BoolOp)
        yield from (
            _terms(last, holds)
            if nested
            else [(node if holds and isinstance(node.op, ast.Or) else last, holds)]
        )
    else:
        yield node, holds


@dataclass(frozen=True, slots=True)
class _Speaker:
    """Says terms, with the facts and the message at hand."""

    view: View
    message: str
    is_settings: bool
    library: str = ""

    def said(self, term: ast.expr, holds: bool) -> Said:
        """Return a term in words, and what the facts show of it."""
        told = self._worded(term, holds)
        if told.holds is not None or isinstance(term, ast.BoolOp) or not (known := known_of(self.view, term)):
            return told
        met = bool(known.value) == holds
        if not known.shown or not (met or known.sure):
            return told
        return replace(told, evidence=tuple(dict.fromkeys((*told.evidence, *known.shown))), holds=met)

    def _worded(self, term: ast.expr, holds: bool) -> Said:
        if isinstance(term, ast.BoolOp):
            every = [self.said(*one) for value in term.values for one in _terms(value, holds)]
            parts = [part for part in every if part.holds is not False] or every
            ways = distinct(way for part in parts for way in part.ways)
            shown = tuple(dict.fromkeys(one for part in parts for one in part.evidence))
            known = {part.holds for part in parts}
            whole = True if True in known else None if None in known else False
            return Said(" or ".join(dict.fromkeys(part.words for part in parts)), ways, shown, holds=whole)
        if isinstance(term, ast.NamedExpr):
            return self.said(term.target, holds)
        if isinstance(term, ast.Compare) and len(term.ops) > 1:
            return Said(f"{_text(term)} {'holds' if holds else 'does not hold'}")
        if isinstance(term, ast.Compare):
            return self._compared(term, holds)
        if isinstance(term, ast.Call):
            return self._called(term, holds)
        if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mod):
            return self._divided(term, divides=not holds)
        if name := _package_word(_last(term)):
            return self._package(name, "", holds)
        words = _named(term)
        return Said(f"{words} is {'on or set' if holds else 'off, empty or not set'}", self._set(term, holds))

    def _compared(self, term: ast.Compare, holds: bool) -> Said:
        left, operator, right = term.left, type(term.ops[0]), term.comparators[0]
        if operator in (ast.IsNot, ast.NotEq, ast.NotIn):
            operator = {ast.IsNot: ast.Is, ast.NotEq: ast.Eq, ast.NotIn: ast.In}[operator]
            holds = not holds
        if operator is ast.Is and _named(right) == "raised":
            return Said(f"{_named(left)} was raised there before: that error, further up, tells why")
        if operator in (ast.Is, ast.Eq) and _is_none(right):
            if name := _package_word(_last(left)):
                return self._package(name, "", present=not holds)
            return Said(f"{_named(left)} is {'not set' if holds else 'set'}", self._set(left, not holds))
        if operator is ast.In:
            return self._among(left, right, holds)
        if operator in (ast.Is, ast.Eq):
            return self._equal(left, right, holds)
        return self._ordered(left, operator if holds else _SWAPPED[operator], right)

    def _equal(self, left: ast.expr, right: ast.expr, holds: bool) -> Said:
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and _constant(right) == 0:
            return self._divided(left, divides=holds)
        words = f"{_named(left)} {'is' if holds else 'is not'} {_named(right)}"
        return Said(words, self._changed(left, right, holds) or _in_dtype(left, right, holds))

    def _divided(self, term: ast.BinOp, divides: bool) -> Said:
        one, other = _named(term.left), _named(term.right)
        if divides:
            return Said(f"{one} is a multiple of {other}")
        way = Remedy(f"Choose the two so that {other} divides {one} without remainder.")
        return Said(f"{one} is no multiple of {other}", (way,))

    def _among(self, left: ast.expr, right: ast.expr, holds: bool) -> Said:
        if "environ" in _text(right) and isinstance(name := _constant(left), str):
            way = Remedy(f"{'Unset' if holds else 'Set'} the environment variable {name}.")
            return Said(f"the environment variable {name} is {'set' if holds else 'not set'}", (way,))
        if isinstance(left, ast.Constant):
            return Said(f"{_named(right)} {'has' if holds else 'has no'} {_named(left)}")
        values = (
            [_named(one) for one in right.elts] if isinstance(right, ast.Tuple | ast.List | ast.Set) else []
        )
        told = ", ".join(values) if values else _named(right)
        known = bool(values) and all(isinstance(one, ast.Constant) for one in right.elts)  # type: ignore[attr-defined]
        way = Remedy(f"Set {_named(left)} to one of {told}.")
        ways = (way,) if known and not holds and self._is_given(left) else _in_dtype(left, right, holds)
        return Said(f"{_named(left)} is {'one' if holds else 'none'} of {told}", ways)

    def _ordered(self, left: ast.expr, operator: type[ast.cmpop], right: ast.expr) -> Said:
        name = _versioned(left)
        asked = _version_text(right)
        if name and asked and operator in _OLDER:
            return self._package(name, _OLDER[operator].format(asked), present=False)
        if (wanted := _capability(left, right)) and operator is ast.Lt:
            return self._card(wanted, enough=False)
        state = _COMPARED.get(operator, "is not as asked beside")
        words = f"{_named(left)} {state} {_named(right)}"
        verb = "Raise" if operator in (ast.Lt, ast.LtE) else "Lower"
        known = self._is_given(left) and operator in _COMPARED
        return Said(words, (Remedy(f"{verb} {_named(left)}: it {state} {_named(right)}."),) if known else ())

    def _called(self, term: ast.Call, holds: bool) -> Said:
        called = _last(term.func)
        if called in ("const_expr", "bool") and term.args:
            inner = next(_terms(term.args[0], holds))
            return self.said(*inner)
        if called in SEES_GPU and "cuda" in _text(term.func):
            words, ways = f"torch sees {'a' if holds else 'no'} GPU", () if holds else ways_to_cuda(self.view)
            return Said(words, ways, of_machine=not holds)
        if called in _CAPABLE and term.args and (wanted := _number(term.args[0])):
            return self._card(wanted, enough=holds)
        if name := _package_word(called):
            return self._package(name, next(filter(None, map(_asked_version, _arguments(term))), ""), holds)
        compared = _IS_VERSION.fullmatch(called)
        if compared and [type(one) for one in term.args] == [ast.Constant, ast.Constant]:
            return self._package(compared[1], "".join(str(_constant(one)) for one in term.args), holds)
        if called == "find_spec" and term.args and isinstance(module := _constant(term.args[0]), str):
            return self._package(module, "", holds)
        if called in ("isinstance", "issubclass") and len(term.args) == 2:
            return Said(f"{_named(term.args[0])} is {'a' if holds else 'no'} {_kinds(term.args[1])}")
        if called == "hasattr" and len(term.args) == 2:
            return Said(f"{_named(term.args[0])} has {'' if holds else 'no '}{_constant(term.args[1])}")
        if _key_of(term):
            state = "on or set" if holds else "off or not set"
            return Said(f"{_named(term)} is {state}", self._set(term, holds))
        if called in _KNOWN_CALLS:
            owner = term.func.value if isinstance(term.func, ast.Attribute) else term
            asked = _named(term.args[0] if term.args else owner)
            return Said(
                _KNOWN_CALLS[called][not holds].format(asked), () if holds else _at_its_path(called, asked)
            )
        return Said(f"{_text(term)} {'holds' if holds else 'does not hold'}")

    def _package(self, word: str, asked: str, present: bool) -> Said:
        """Say whether a package is there, and what of that the facts show."""
        name = distribution_of(self.view.matrix, word.lower())
        if name == self.library or (package_facts(self.view, name) is None and name not in STACK):
            return Said(f"{word.lower()} is {'there' if present else 'not there'}")
        there = self._is_there(name, asked)
        holds = None if there is None else there == present
        shown = Evidence(name, self.view.version_text(name) or "listed", "the facts")
        evidence = (shown,) if self.view.installed(name) else ()
        if present:
            return Said(f"{name}{asked} is installed", (), evidence, holds=holds)
        ways = wanted_package(name, asked)
        if evidence and holds:
            return Said(f"{name} is {shown.value}, not {asked}", ways, evidence, holds=True)
        if evidence:
            return Said(f"the process finds no {name}{asked}", ways, evidence, holds=holds)
        words = f"{name}{asked} is not installed (or is older, or does not import)"
        return Said(words if holds is None else f"{name} is not installed", ways, holds=holds)

    def _is_there(self, name: str, asked: str) -> bool | None:
        """True where the facts list a release of a package that is asked for; None where they do not tell."""
        there, version = self.view.installed(name), self.view.version(name)
        if not there or not asked:
            return there
        return version_satisfies(version, asked) if version else None

    def _card(self, wanted: float, enough: bool) -> Said:
        """Say which compute capability is asked for, by the message first; the facts may tell the card's."""
        if told := _TOLD_CARD.search(self.message):
            wanted = float(told[1])
        asked = f"{wanted:g}" if wanted < 20 else f"{wanted // 10:.0f}.{wanted % 10:.0f}"
        asked = asked if "." in asked else f"{asked}.0"
        lowest = self.view.lowest_capability()
        shown = (Evidence("gpu", f"compute capability {lowest}", "the facts"),) if lowest else ()
        holds = None if lowest is None else (float(str(lowest)) >= float(asked)) == enough
        if enough:
            return Said(f"the card's compute capability is at least {asked}", (), shown, holds=holds)
        way = Remedy(
            f"It takes a card of compute capability {asked} or newer, or another way that older cards have."
        )
        return Said(f"the card's compute capability is below {asked}", (way,), shown, holds=holds)

    def _is_given(self, node: ast.expr) -> bool:
        """True for what a user can change: an argument or a setting, or what the message itself names."""
        if variable_of(node):
            return True
        word, root = _last(node), _root(node)
        if not word or word.startswith("_"):
            return False
        if _GIVEN.fullmatch(root) or (root in _OWN and self.is_settings):
            return True
        return "_" in word and word in _WORD.findall(self.message)

    def _set(self, node: ast.expr, is_set: bool) -> tuple[Remedy, ...]:
        if not self._is_given(node):
            return ()
        return (Remedy(f"Leave {_named(node)} out (unset)." if is_set else f"Set {_named(node)}."),)

    def _changed(self, left: ast.expr, right: ast.expr, holds: bool) -> tuple[Remedy, ...]:
        if not self._is_given(left) or not isinstance(right, ast.Constant):
            return ()
        told = _named(right)
        return (
            Remedy(
                f"Set {_named(left)} to something else than {told}."
                if holds
                else f"Set {_named(left)} to {told}."
            ),
        )


def _in_dtype(left: ast.expr, right: ast.expr, holds: bool) -> tuple[Remedy, ...]:
    """Return how another type of numbers is had, where a value's type is held against some."""
    types = list(dict.fromkeys(dtypes_in(right)))
    if not types or not _last(left).endswith("dtype"):
        return ()
    told = " or ".join(types)
    asked = f"another type than {told}" if holds else told
    text = (
        f"Give {_named(left)} as {asked}: by the dtype (torch_dtype) with which the model is loaded, by bf16"
        " or fp16 of the run, or converted beforehand (.to())."
    )
    return (Remedy(text),)


def _at_its_path(called: str, asked: str) -> tuple[Remedy, ...]:
    """Return how a file that is not found is had: a relative path counts from where the process runs."""
    if called not in _PLACES:
        return ()
    text = (
        f"Let {asked} name a {_PLACES[called]} that is there as this process sees it: a relative path counts"
        " from the folder in which it was started (cd to the project's root first, in the job's script too),"
        " so write the absolute path."
    )
    return (Remedy(text),)


def wanted_package(name: str, asked: str) -> tuple[Remedy, ...]:
    """Return how a package is had; a range without a lower bound is no wish for an upgrade."""
    if not asked:
        there = Remedy(
            f"Where {name} is installed already, it is in another Python than the one that runs: install it"
            " with that interpreter (a portable program brings its own, such as python_embeded).",
            commands("python -m pip install {}", name),
        )
        return (Remedy(f"Install {name} in that very environment.", pip_install(name), {name: ANY}), there)
    pins = {name: asked}
    return (Remedy(f"Install a release of {name} in that range.", install_commands(pins), pins),)


def _package_word(word: str) -> str:
    match = _AVAILABLE.fullmatch(word)
    return next(filter(None, match.groups()), "") if match else ""


def _versioned(node: ast.expr) -> str:
    """Return the package of which a node is the version; empty for another."""
    match = _VERSIONED.search(_text(node))
    word = next(filter(None, match.groups()), "") if match else ""
    return "" if word in ("importlib_metadata", "metadata", "parse", "min", "required", "") else word


def _version_text(node: ast.expr) -> str:
    match = _VERSION.search(_text(node))
    return match[1] if match else ""


def _asked_version(node: ast.expr) -> str:
    value = _constant(node)
    return f">={value}" if isinstance(value, str) and parse_version(value) else ""


def _arguments(term: ast.Call) -> Sequence[ast.expr]:
    return [*term.args, *(keyword.value for keyword in term.keywords)]


def _capability(left: ast.expr, right: ast.expr) -> float:
    """Return the compute capability with which a card's is compared; 0 where none is."""
    text = _text(left).lower()
    if not any(word in text for word in ("capability", "compute_cap", "sm_version", "cuda_arch", "major")):
        return 0
    if isinstance(left, ast.Subscript) and _constant(left.slice) == 1:
        return 0  # the minor number alone
    return _number(right)


def _number(node: ast.expr) -> float:
    value = _constant(node)
    if isinstance(node, ast.Tuple) and len(node.elts) == 2:
        major, minor = (_constant(one) for one in node.elts)
        return major * 10 + minor if isinstance(major, int) and isinstance(minor, int) else 0
    return float(value) if isinstance(value, int | float) and 3 <= value < 150 else 0


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _last(node: ast.expr) -> str:
    """Return the last name of a chain of names, or the key that is looked up in one."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    key = _key_of(node)
    return key if key else ""


def _key_of(node: ast.expr) -> str:
    """Return the key of `x['key']`, `x.get('key')` and `getattr(x, 'key', …)`; empty for other nodes."""
    if isinstance(node, ast.Subscript) and isinstance(key := _constant(node.slice), str):
        return key
    if isinstance(node, ast.Call) and node.args and _last(node.func) in ("get", "getattr"):
        place = 1 if _last(node.func) == "getattr" and len(node.args) > 1 else 0
        key = _constant(node.args[place])
        return key if isinstance(key, str) else ""
    return ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Call) and _last(node.func) == "getattr" and node.args:
            node = node.args[0]
        else:
            node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _named(node: ast.expr) -> str:
    """Return what a node is called: without `self`, lengths, shapes and variables in words."""
    if name := variable_of(node):
        return f"the environment variable {name}"
    if key := _key_of(node):
        owner = node.func if isinstance(node, ast.Call) else node
        parent = _key_of(owner.value) if isinstance(owner, ast.Attribute | ast.Subscript) else ""
        return f"{parent}.{key}" if parent else key
    if isinstance(node, ast.Call) and _last(node.func) == "len" and node.args:
        return f"the number of {_named(node.args[0])}"
    return _text(node)


def _kinds(node: ast.expr) -> str:
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    return " or ".join(_text(one).rpartition(".")[2] for one in nodes)


def _text(node: ast.expr) -> str:
    text = _SELF.sub("", ast.unparse(node))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + _CUT
