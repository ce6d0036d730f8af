"""Facts, diagnoses and answers for a cluster without what identifies a person or a machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from envdoctor.bundling.known_values import read_known_values
from envdoctor.bundling.redaction import Redactor
from envdoctor.facts import Facts, FactsFormatError, from_json, to_json
from envdoctor.findings import CheckResult, Diagnosis

T = TypeVar("T")

_MOST_NAMES = 100
_VERSION_KEYS = frozenset({"version", "user_version", "specifier"})
_NODES = frozenset({"nodes", "missing", "new"})
_OF_A_FACT = frozenset({"value", "values", "was", "now"})


def make_redactor(*facts: Facts) -> Redactor:
    """Return a redactor that knows this machine's values and takes no version of `facts` for an address."""
    packages = (name for one in facts for name in one.environment.distributions)
    return Redactor(read_known_values(), keep={*_versions([to_json(one) for one in facts]), *packages})


def _versions(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _versions(inner, key if name == "value" else str(name))
    elif isinstance(value, list):
        for item in value:
            yield from _versions(item, key)
    elif isinstance(value, str) and key in _VERSION_KEYS:
        yield value.lstrip("=<>~! ")


def redact_facts(facts: Facts, redactor: Redactor) -> Facts:
    """Return the facts with every text redacted; numbers and versions stay."""
    return _formed(redact_plain(to_json(facts), redactor))


def redact_plain(facts: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Return facts in plain JSON terms with every text redacted."""
    redactor.learn_json(facts)
    shared = {**redactor.redact_json(facts), "schema": facts["schema"]}
    for verdict, told in zip(shared.get("verdicts", ()), facts.get("verdicts", ()), strict=True):
        verdict["op"] = _redact_op(told["op"], redactor)
    return shared


def _redact_op(op: str, redactor: Redactor) -> str:
    """The `@1` behind an op says on which card it ran; it is no address."""
    name, _, card = op.partition("@")
    return f"{redactor.redact(name)}@{card}" if card.isdecimal() else redactor.redact(op)


def _formed(plain: dict[str, Any]) -> Facts:
    """Read redacted facts; a name that a placeholder cannot stand for becomes `redacted`."""
    for _ in range(_MOST_NAMES):
        try:
            return from_json(plain)
        except FactsFormatError as error:
            *way, last = error.path[1:]
            holder: Any = plain
            for step in way:
                holder = holder[step]
            holder[last] = "redacted"
    return from_json(plain)


def redact_diagnosis(diagnosis: Diagnosis, redactor: Redactor | None = None) -> Diagnosis:
    """Return the diagnosis as it may be shared; a `redactor` given keeps its placeholders."""
    redactor = redactor or make_redactor(diagnosis.facts)
    redactor.learn_json(diagnosis.to_json())
    return redact_value(diagnosis, redactor)


def redact_value(value: T, redactor: Redactor) -> T:
    """Return a value, or what is in it, with every text redacted by the name that it has."""
    return _redacted(value, redactor, "")  # type: ignore[no-any-return]


def _redacted(value: Any, redactor: Redactor, name: str) -> Any:
    if isinstance(value, Facts):
        return redact_facts(value, redactor)
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return redactor.redact_field("hostname" if name in _NODES else name, value)
    if isinstance(value, CheckResult):
        named = zip(value._fields, value, strict=True)
        return CheckResult(*(_redacted(item, redactor, field) for field, item in named))
    if isinstance(value, tuple):
        return tuple(_redacted(item, redactor, name) for item in value)
    if isinstance(value, Mapping):
        return redactor.redact_json(value, name)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    fact = getattr(value, "fact", name)
    return replace(
        value,
        **{
            one.name: _redacted(
                getattr(value, one.name), redactor, fact if one.name in _OF_A_FACT else one.name
            )
            for one in fields(value)
        },
    )
