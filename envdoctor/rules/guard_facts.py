"""What the facts say of an expression of a library's condition: variables, settings, devices, systems.

An expression is worked out as Python would, as far as the facts tell the values in it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.findings import Evidence
from envdoctor.rules.arch import UNAVAILABLE
from envdoctor.rules.ranges import parse_version
from envdoctor.rules.view import View, cards, quoted, symptoms, torch_build
from envdoctor.values import dataclass

HALF_FROM = 8.0
"""The compute capability from which on a card computes bfloat16 of itself."""
_OF_SETTINGS = re.compile(r"(?:\w+_)?(?:args|cfg|config|self|cls)")
"""How that is called which holds settings under their own names."""
_DTYPES = {
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32",
    "float64": "fp64",
}  # fmt: skip
_ASKS_SYSTEM = ("sys.platform", "platform.system()", "os.name")
_SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "windows": ("win32", "Windows", "nt"),
    "macos": ("darwin", "Darwin", "posix"),
}
_WORDS = {"true": True, "false": False, "none": None}
SEES_GPU = frozenset({"is_available", "is_torch_cuda_available", "is_cuda_available"})
"""What asks, of CUDA, whether there is a GPU."""
_BUILDS = {"is_cuda": ("cuda",), "is_rocm": ("rocm",), "is_hip": ("rocm",), "is_cuda_alike": ("cuda", "rocm")}
_COMPARES: dict[type[ast.cmpop], Callable[[object, object], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.eq, ast.IsNot: operator.ne,
}  # fmt: skip
_ORDERS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Known:
    """A value, and the facts that tell it."""

    value: object
    shown: tuple[Evidence, ...] = ()
    sure: bool = True
    """False for a setting: what was stated may be overridden where it runs."""


def known_of(view: View, node: ast.expr) -> Known | None:
    """Return an expression's value by the facts; None where they do not tell."""
    match node:
        case ast.Constant(value=value):
            return Known(_alike(value))
        case ast.Tuple(elts=some) | ast.List(elts=some) | ast.Set(elts=some):
            return _all_of(view, some)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            told = known_of(view, inner)
            return told and Known(not told.value, told.shown, told.sure)
        case ast.Compare(left=left, ops=[compared], comparators=[right]):
            return _compared(view, left, compared, right)
        case ast.Call(func=ast.Attribute(value=owner, attr="lower" | "strip"), args=[]):
            return known_of(view, owner)
        case _:
            return next(filter(None, (tell(view, node) for tell in _TELLERS)), None)


def variable_of(node: ast.expr) -> str:
    """Return the environment variable that an expression looks up; empty for another."""
    match node:
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if _reads_variable(function):
            return name
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(name))) if _is_environ(owner):
            return name
        case ast.Attribute(value=ast.Name(id="envs"), attr=name):
            return name
        case _:
            return ""


def _reads_variable(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(attr="getenv") | ast.Name(id="getenv"):
            return True
        case ast.Attribute(value=owner, attr="get"):
            return _is_environ(owner)
        case _:
            return False


def _is_environ(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


def _all_of(view: View, nodes: list[ast.expr]) -> Known | None:
    told = [known_of(view, one) for one in nodes]
    known = [one for one in told if one is not None]
    shown = tuple(evidence for one in known for evidence in one.shown)
    sure = all(one.sure for one in known)
    return Known(tuple(one.value for one in known), shown, sure) if len(known) == len(told) else None


def _compared(view: View, left: ast.expr, compared: ast.cmpop, right: ast.expr) -> Known | None:
    among = isinstance(compared, ast.In | ast.NotIn)
    if among and _is_environ(right) and isinstance(left, ast.Constant):
        told = _variable(view, str(left.value))
        return told and Known((told.value is None) == isinstance(compared, ast.NotIn), told.shown)
    one, other = known_of(view, left), known_of(view, right)
    if one is None or other is None or not (one.shown or other.shown):
        return None
    shown, sure = (*one.shown, *other.shown), one.sure and other.sure
    if among and isinstance(other.value, tuple):
        return Known((one.value in other.value) == isinstance(compared, ast.In), shown, sure)
    ordered = all(isinstance(each.value, int | float) for each in (one, other)) or (
        isinstance(one.value, tuple) and isinstance(other.value, tuple)
    )
    asked = _COMPARES.get(type(compared)) or (_ORDERS.get(type(compared)) if ordered else None)
    return Known(asked(one.value, other.value), shown, sure) if asked else None


def _alike(value: object) -> object:
    """Return a value as it compares: names of types of numbers are one, texts without their case."""
    if not isinstance(value, str):
        return value
    text = value.lower().removeprefix("torch.")
    return _DTYPES.get(text, text)


def _of_environment(view: View, node: ast.expr) -> Known | None:
    """Return what a variable holds; where it is not set, what is taken in its place."""
    told = _variable(view, name) if (name := variable_of(node)) else None
    if told is None or told.value is not None:
        return told
    default = node.args[1] if isinstance(node, ast.Call) and node.args[1:] else ast.Constant(None)
    taken = known_of(view, default)
    return taken and Known(taken.value, told.shown)


def _variable(view: View, name: str) -> Known | None:
    """Return a variable's value, None in it where a probed machine has no such variable."""
    value = view.facts.variables.get(name)
    if value is None and view.facts.origin != "probe":
        return None
    return Known(_alike(value), (Evidence(name, "not set" if value is None else value, "the environment"),))


def _of_device(view: View, node: ast.expr) -> Known | None:
    """Return whether torch sees a GPU, is built for one kind, or computes bfloat16 on it."""
    called = _called(node)
    build = torch_build(view) or (Evidence("torch", view.version_text("torch") or "", "the facts"),)
    variant = view.torch_build.get("variant") or (not view.cuda_assumed and view.torch_build.get("cuda"))
    if called in SEES_GPU and "cuda" in ast.unparse(node):
        seen = symptoms(view, UNAVAILABLE)
        if seen or variant == "cpu":
            return Known(False, quoted(seen[:1]) or build)
        told = view.torch_build.get("available") is True
        return Known(True, (Evidence("torch.cuda.is_available()", "True", "the facts"),)) if told else None
    if called in _BUILDS and isinstance(variant, str):
        kind = next((one for one in ("cpu", "rocm", "xpu") if variant.startswith(one)), "cuda")
        return Known(kind in _BUILDS[called], build)
    if ast.unparse(node).startswith("hasattr(torch._C, '_cuda_") and isinstance(variant, str):
        return Known(variant != "cpu", build)
    lowest = view.lowest_capability()
    if called == "is_bf16_supported" and lowest:
        return Known(float(str(lowest)) >= HALF_FROM, cards(view.gpus.get() or ()))
    return None


def _called(node: ast.expr) -> str:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name
        case ast.Attribute(value=ast.Attribute(attr="version"), attr="hip"):
            return "is_rocm"
        case _:
            return ""


def _of_system(view: View, node: ast.expr) -> Known | None:
    """Return how Python calls the system that runs, or its processor."""
    host = view.facts.host
    system, text = host.os.get() or "", ast.unparse(node)
    if text in _ASKS_SYSTEM and system in _SYSTEMS:
        name = _SYSTEMS[system][_ASKS_SYSTEM.index(text)]
        return Known(_alike(name), (Evidence("system", system, "the facts"),))
    if text == "sys.version_info" and (python := parse_version(view.python.get() or "")):
        return Known(python.release, (Evidence("Python", str(python), "the facts"),))
    arch = host.arch.get() if text == "platform.machine()" else None
    return Known(_alike(arch), (Evidence("architecture", arch, "the facts"),)) if arch else None


def _of_settings(view: View, node: ast.expr) -> Known | None:
    """Return a setting's value: of what holds settings, the one of that name that was stated last."""
    match node:
        case ast.Attribute(value=ast.Attribute(attr=owner) | ast.Name(id=owner), attr=name):
            named = bool(_OF_SETTINGS.fullmatch(owner))
        case ast.Name(id=name):
            named = "_" in name
        case _:
            return None
    stated = (one for one in reversed(view.facts.settings) if named and name in (one.native_key, one.key))
    if (setting := next(stated, None)) is None:
        return None
    shown = Evidence(setting.native_key or setting.key, setting.value, setting.source)
    return Known(_read(setting.value), (shown,), sure=False)


def _read(text: str) -> object:
    folded = text.lower()
    if folded in _WORDS:
        return _WORDS[folded]
    try:
        return float(text)
    except ValueError:
        return _alike(text)


def _of_dtype(_view: View, node: ast.expr) -> Known | None:
    """Return a type of numbers that is named: `torch.float16`."""
    match node:
        case ast.Attribute(value=ast.Name(id="torch"), attr=name) if name in _DTYPES or "float8" in name:
            return Known(_alike(name))
        case _:
            return None


_TELLERS = (_of_environment, _of_device, _of_system, _of_settings, _of_dtype)


def dtypes_in(node: ast.expr) -> Iterator[str]:
    """Yield the types of numbers that an expression names, as they are written."""
    for one in ast.walk(node):
        match one:
            case ast.Attribute(value=ast.Name(id="torch"), attr=name) | ast.Constant(value=str(name)):
                if _alike(name) in _DTYPES.values() or "float8" in name or "fp8" in name:
                    yield name
            case _:
                pass
