"""Values as JSON and back: generic functions driven by the types of the dataclasses."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar

from envdoctor.facts import model
from envdoctor.facts.names import Form
from envdoctor.facts.observed import Observed, Unknown
from envdoctor.facts.versions import ComputeCapability, CudaVersion, DriverVersion

V = TypeVar("V")
GREATEST = 2**63
"""No number of a machine is greater: bytes, counts and indices fit into 64 bits."""
DEEPEST = 20
Path = tuple[str | int, ...]
_TEXTUAL = (ComputeCapability, CudaVersion, DriverVersion)


class FactsFormatError(ValueError):
    """Plain data is no value of ours; the message names the field, `path` leads to it."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{_dotted(path)}: {problem}")
        self.path, self.problem = path, problem


def _dotted(path: Path) -> str:
    """Return a path as a message may show it: each key short, all in one line."""
    parts = (f"[{p}]" if isinstance(p, int) else "." + ascii(p[:60])[1:-1] for p in path)
    return "".join(parts).removeprefix(".")


def to_json(facts: model.Facts) -> dict[str, Any]:
    """Return `facts` in plain JSON terms; what equals its default is left out."""
    return {"schema": model.SCHEMA, **encode(facts)}


def from_json(data: Any) -> model.Facts:
    """Read what `to_json` or a probe wrote; raises FactsFormatError naming the field."""
    if not isinstance(data, dict) or data.get("schema") != model.SCHEMA:
        raise FactsFormatError(("schema",), f"expected {model.SCHEMA!r}")
    return decode(model.Facts, {k: v for k, v in data.items() if k != "schema"}, ("facts",))


def encode(value: Any) -> Any:
    """Return a value of the vocabulary in plain JSON terms."""
    if isinstance(value, Observed):
        return {"value": encode(value.value), "source": value.source}
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if isinstance(value, _TEXTUAL):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: encode(v)
            for f in dataclasses.fields(value)
            if not _is_default(f, v := getattr(value, f.name))
        }
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(v) for v in value]
    return value


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(field.default == value)
    if field.default_factory is not dataclasses.MISSING:
        return bool(field.default_factory() == value)
    return False


def decode(kind: type[V], data: Any, path: Path) -> V:
    """Read plain JSON terms as a value of `kind`; raises FactsFormatError naming the field below `path`."""
    result: Any = _decode(kind, data, path)
    return typing.cast(V, result)


def _decode(kind: Any, data: Any, path: Path) -> Any:
    if kind is Any:
        return _decode_plain(data, path)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _decode_textual(kind, data, path) if kind in _TEXTUAL else _decode_dataclass(kind, data, path)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _decode_form(arguments, data, path)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(arguments, data, path)
    if origin is Literal:
        return _one_of(arguments, data, path)
    if origin is tuple:
        if not isinstance(data, list):
            raise FactsFormatError(path, "expected a list")
        return tuple(_decode(arguments[0], item, (*path, i)) for i, item in enumerate(data))
    if origin is not None and issubclass(origin, Mapping):
        return _decode_mapping(arguments, data, path)
    return _decode_scalar(kind, data, path)


def _decode_mapping(arguments: tuple[Any, ...], data: Any, path: Path) -> dict[Any, Any]:
    if not isinstance(data, dict):
        raise FactsFormatError(path, "expected an object")
    key, value = arguments
    return {_decode(key, k, (*path, k)): _decode(value, v, (*path, k)) for k, v in data.items()}


def _decode_scalar(kind: Any, data: Any, path: Path) -> Any:
    """A number where a float is wanted stays what it is, so that it is shown as it was written."""
    wanted = (float, int) if kind is float else (kind,)
    if kind not in (bool, int, str, float):
        raise FactsFormatError(path, f"unexpected type {kind}")
    if type(data) not in wanted:
        raise FactsFormatError(path, f"expected {kind.__name__}")
    if isinstance(data, (int, float)) and not abs(data) <= GREATEST:
        raise FactsFormatError(path, "out of bounds")
    return data


def _one_of(allowed: tuple[Any, ...], data: Any, path: Path) -> Any:
    if data not in allowed:
        raise FactsFormatError(path, f"{data!r:.60} is none of {', '.join(map(str, allowed))}")
    return data


def _decode_form(arguments: tuple[Any, ...], data: Any, path: Path) -> Any:
    """Forms of facts are held against here; whoever has others looks at them itself."""
    kind, form = arguments
    value = _decode(kind, data, path)
    if isinstance(form, Form) and not form.holds(value):
        raise FactsFormatError(path, f"not {form.what}")
    return value


def _decode_plain(data: Any, path: Path, depth: int = 0) -> Any:
    """Read what has no type of its own: JSON without absurd numbers, and not deep."""
    if depth > DEEPEST:
        raise FactsFormatError(path, "too deep")
    if isinstance(data, dict):
        return {k: _decode_plain(v, (*path, k), depth + 1) for k, v in data.items()}
    if isinstance(data, list):
        return [_decode_plain(v, (*path, i), depth + 1) for i, v in enumerate(data)]
    if isinstance(data, (int, float)) and not abs(data) <= GREATEST:
        raise FactsFormatError(path, "out of bounds")
    return data


def _decode_textual(kind: Any, data: Any, path: Path) -> Any:
    try:
        return kind.parse(data)
    except (ValueError, TypeError, AttributeError):
        raise FactsFormatError(path, f"not a {kind.__name__}") from None


def _decode_union(arguments: tuple[Any, ...], data: Any, path: Path) -> Any:
    if Unknown in arguments:
        if isinstance(data, dict) and isinstance(data.get("unknown"), str):
            return Unknown(data["unknown"])
        observed = next(a for a in arguments if a is not Unknown)
        if not isinstance(data, dict) or "value" not in data:
            raise FactsFormatError(path, "expected a value with its source, or unknown with its reason")
        value = _decode(typing.get_args(observed)[0], data["value"], (*path, "value"))
        return Observed(value, str(data.get("source", "")))
    if data is None and type(None) in arguments:
        return None
    return _decode_first([a for a in arguments if a is not type(None)], data, path)


def _decode_first(kinds: list[Any], data: Any, path: Path) -> Any:
    """Read as the first type that fits; the last one's complaint is told."""
    for kind in kinds[:-1]:
        try:
            return _decode(kind, data, path)
        except FactsFormatError:
            continue
    return _decode(kinds[-1], data, path)


def _decode_dataclass(kind: Any, data: Any, path: Path) -> Any:
    if not isinstance(data, dict):
        raise FactsFormatError(path, "expected an object")
    hints = hints_of(kind)
    for name in data:
        if name not in hints:
            raise FactsFormatError((*path, name), "unknown field")
    values = {name: _decode(hints[name], data[name], (*path, name)) for name in data}
    try:
        return kind(**values)
    except TypeError:
        missing = sorted(
            f.name
            for f in dataclasses.fields(kind)
            if f.name not in values
            and f.default is dataclasses.MISSING
            and f.default_factory is dataclasses.MISSING
        )
        raise FactsFormatError(path, f"{', '.join(missing)} missing") from None


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields by name, with their forms."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@cache
def trusting(kind: Any) -> Callable[[Any], Any] | None:
    """Return what makes a value of `kind` of plain data that was checked before; None: it is one as it is."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return cache(kind.parse) if kind in _TEXTUAL else _trusting_dataclass(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return trusting(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return trusting(next(a for a in arguments if a is not type(None)))
    if origin is tuple:
        item = trusting(arguments[0])
        return tuple if item is None else lambda data: tuple(map(item, data))
    return None


def _trusting_dataclass(kind: Any) -> Callable[[dict[str, Any]], Any]:
    """The types must stand in the class as they are: reading them from texts takes longer than the rest."""
    makers = [(f.name, make) for f in dataclasses.fields(kind) if (make := trusting(f.type))]  # type: ignore[arg-type]

    def made(data: dict[str, Any]) -> Any:
        values = dict(data)
        for name, make in makers:
            if name in values:
                values[name] = make(values[name])
        return kind(**values)

    return made
