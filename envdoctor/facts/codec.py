"""Facts as JSON and back: one generic pair of functions driven by the types of the dataclasses."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from envdoctor.facts import model
from envdoctor.facts.names import Form
from envdoctor.facts.observed import Observed, Unknown
from envdoctor.facts.versions import ComputeCapability, CudaVersion, DriverVersion

V = TypeVar("V")
GREATEST = 2**63
"""No number of a machine is greater: bytes, counts and indices fit into 64 bits."""
DEEPEST = 20
_TEXTUAL = (ComputeCapability, CudaVersion, DriverVersion)


class FactsFormatError(ValueError):
    """A JSON text is no facts of ours; the message names the field."""


def to_json(facts: model.Facts) -> dict[str, Any]:
    """Return `facts` in plain JSON terms; what equals its default is left out."""
    return {"schema": model.SCHEMA, **encode(facts)}


def from_json(data: Any) -> model.Facts:
    """Read what `to_json` or a probe wrote; raises FactsFormatError naming the field."""
    if not isinstance(data, dict) or data.get("schema") != model.SCHEMA:
        raise FactsFormatError(f"schema: expected {model.SCHEMA!r}")
    return decode(model.Facts, {k: v for k, v in data.items() if k != "schema"}, "facts")


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


def decode(kind: type[V], data: Any, path: str) -> V:
    """Read plain JSON terms as a value of `kind`; raises FactsFormatError naming `path`."""
    result: Any = _decode(kind, data, path)
    return typing.cast(V, result)


def _decode(kind: Any, data: Any, path: str) -> Any:
    if kind is Any:
        return _decode_plain(data, path)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _decode_textual(kind, data, path) if kind in _TEXTUAL else _decode_dataclass(kind, data, path)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _decode_form(arguments[1], data, path)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(arguments, data, path)
    if origin is tuple:
        if not isinstance(data, list):
            raise FactsFormatError(f"{path}: expected a list")
        return tuple(_decode(arguments[0], item, f"{path}[{i}]") for i, item in enumerate(data))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(data, dict):
            raise FactsFormatError(f"{path}: expected an object")
        return {
            _decode(arguments[0], k, f"{path}, key {k[:60]}"): _decode(arguments[1], v, f"{path}.{k[:60]}")
            for k, v in data.items()
        }
    if kind is bool or kind is int or kind is str:
        if type(data) is not kind:
            raise FactsFormatError(f"{path}: expected {kind.__name__}")
        if isinstance(data, int) and abs(data) > GREATEST:
            raise FactsFormatError(f"{path}: out of bounds")
        return data
    raise FactsFormatError(f"{path}: unexpected type {kind}")


def _decode_form(form: Form, data: Any, path: str) -> str:
    if not isinstance(data, str) or not form.holds(data):
        raise FactsFormatError(f"{path}: not {form.what}")
    return data


def _decode_plain(data: Any, path: str, depth: int = 0) -> Any:
    """Read what has no type of its own: JSON without absurd numbers, and not deep."""
    if depth > DEEPEST:
        raise FactsFormatError(f"{path}: too deep")
    if isinstance(data, dict):
        return {k: _decode_plain(v, f"{path}.{k[:60]}", depth + 1) for k, v in data.items()}
    if isinstance(data, list):
        return [_decode_plain(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(data)]
    if isinstance(data, (int, float)) and not abs(data) <= GREATEST:
        raise FactsFormatError(f"{path}: out of bounds")
    return data


def _decode_textual(kind: Any, data: Any, path: str) -> Any:
    try:
        return kind.parse(data)
    except (ValueError, TypeError, AttributeError):
        raise FactsFormatError(f"{path}: not a {kind.__name__}") from None


def _decode_union(arguments: tuple[Any, ...], data: Any, path: str) -> Any:
    if Unknown in arguments:
        if isinstance(data, dict) and isinstance(data.get("unknown"), str):
            return Unknown(data["unknown"])
        observed = next(a for a in arguments if a is not Unknown)
        if not isinstance(data, dict) or "value" not in data:
            raise FactsFormatError(f"{path}: expected a value with its source, or unknown with its reason")
        value = _decode(typing.get_args(observed)[0], data["value"], f"{path}.value")
        return Observed(value, str(data.get("source", "")))
    if data is None:
        return None
    return _decode(next(a for a in arguments if a is not type(None)), data, path)


def _decode_dataclass(kind: Any, data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise FactsFormatError(f"{path}: expected an object")
    hints = _hints(kind)
    for name in data:
        if name not in hints:
            raise FactsFormatError(f"{path}.{name[:60]}: unknown field")
    values = {name: _decode(hints[name], data[name], f"{path}.{name}") for name in data}
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
        raise FactsFormatError(f"{path}: {', '.join(missing)} missing") from None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)
