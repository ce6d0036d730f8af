"""Facts and diagnoses without what identifies a person or a machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from envdoctor.bundling.known_values import read_known_values
from envdoctor.bundling.redaction import Redactor
from envdoctor.facts import Facts, from_json, to_json
from envdoctor.findings import CheckResult, Diagnosis, Evidence, Finding, Remedy

_VERSION_KEYS = frozenset({"version", "user_version", "specifier"})


def make_redactor(facts: Facts) -> Redactor:
    """Return a redactor that knows this machine's values and takes no version of `facts` for an address."""
    return Redactor(read_known_values(), keep={*_versions(to_json(facts)), *facts.environment.distributions})


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
    plain = to_json(facts)
    redactor.learn_json(plain)
    return from_json({**redactor.redact_json(plain), "schema": plain["schema"]})


def redact_diagnosis(diagnosis: Diagnosis, redactor: Redactor | None = None) -> Diagnosis:
    """Return the diagnosis as it may be shared; a `redactor` given keeps its placeholders."""
    redactor = redactor or make_redactor(diagnosis.facts)
    return replace(
        diagnosis,
        facts=redact_facts(diagnosis.facts, redactor),
        checks=tuple(_redact_check(check, redactor) for check in diagnosis.checks),
        findings=tuple(_redact_finding(finding, redactor) for finding in diagnosis.findings),
        examined=replace(
            diagnosis.examined,
            source=redactor.redact(diagnosis.examined.source),
            files=tuple(redactor.redact(file) for file in diagnosis.examined.files),
        ),
    )


def _redact_check(check: CheckResult, redactor: Redactor) -> CheckResult:
    return replace(check, reason=redactor.redact(check.reason) if check.reason else check.reason)


def _redact_finding(finding: Finding, redactor: Redactor) -> Finding:
    redact = redactor.redact
    return replace(
        finding,
        summary=redact(finding.summary),
        cause=redact(finding.cause),
        evidence=tuple(
            Evidence(e.fact, redactor.redact_field(e.fact, e.value), redact(e.source))
            for e in finding.evidence
        ),
        remedies=tuple(
            Remedy(redact(r.text), tuple(redact(c) for c in r.commands), r.pins) for r in finding.remedies
        ),
    )
