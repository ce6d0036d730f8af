"""`python gathering/secret_rules.py RULES LICENSE COMMIT`: how secrets look, by gitleaks' rules.

gitleaks (MIT) publishes what some two hundred issuers' tokens look like, as RE2 patterns. A rule there is
either a token that its shape gives away, or an issuer's name, an assignment and a value. The first kind is
kept as a pattern without the delimiters around it, with the literal that must stand in it; the second as
names and the value's pattern: what may stand between is one question, answered in `bundling/labels.py`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pattern_literals import Literals, find_literals

from envdoctor.errors import InputError
from envdoctor.files import replace_file
from envdoctor.toml_text import parse_toml

NAME = "secret-rules"
_PAGE = "https://github.com/gitleaks/gitleaks/blob/{commit}/config/gitleaks.toml"
_BETWEEN = r"(?:[ \t\w.-]{0,20})[\s'\"]{0,3}".replace('\\"', '"')
_ASSIGNED = r"[\x60'\"\s=]{0,5}".replace('\\"', '"')
_BEFORE = re.compile(r"\[\\w\.-\]\{0,50\}\?")
_DELIMITER = re.compile(
    r"\(\?:\[\\x60'\"\\s;\]\|\\\\\[nr\]\|\$(?:\|\\b)?\)|\(\?:\[\^[^\]]{1,20}\]\|\\z\)|"
    r"\(\?:\$\|\[[^\]]{1,20}\]\)|\(\?:\^\|\[[^\]]{1,20}\]\)"
)
# Rules for what is no token of its own: several lines, a command, a frame, or any word beside `key`.
_ELSEWHERE_WORDS = """
curl-auth-header curl-auth-user freemius-secret-key generic-api-key gitlab-session-cookie hashicorp-tf-
password jwt jwt-base64 kubernetes-secret-yaml nuget-config-password pkcs12-file private-key sidekiq-
secret sidekiq-sensitive-url
"""
_ELSEWHERE = frozenset(_ELSEWHERE_WORDS.split())
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:(?:\[_-\]\?|[_.-])[A-Za-z0-9]+)*")
_EVERYDAY_WORDS = frozenset(("api", "oauth", "key", "token", "login"))
_LEAST_MARK = 4


def read_rules(text: str, commit: str) -> dict[str, Any]:
    """Return the formats and named values of a `gitleaks.toml`, and which of its rules are left out.

    Raises InputError for a text that is no such file.
    """
    formats: list[dict[str, Any]] = []
    named: list[dict[str, Any]] = []
    left: list[str] = []
    for rule in _rules(text):
        found = [] if rule["id"] in _ELSEWHERE else list(_read_rule(rule))
        named += [row for row in found if "names" in row]
        formats += [row for row in found if "hints" in row]
        if not found:
            left.append(rule["id"])
    return {
        "schema": "envdoctor.secret-rules/1",
        "source": _PAGE.format(commit=commit),
        "formats": formats,
        "named": named,
        "left_out": sorted(left),
    }


def _rules(text: str) -> list[Mapping[str, Any]]:
    try:
        rules = parse_toml(text)["rules"]
    except (ValueError, KeyError) as error:
        raise InputError(f"no rules of gitleaks: {error}") from None
    return list(rules)


def _read_rule(rule: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    identity, pattern = rule["id"], _DELIMITER.sub("", rule.get("regex", ""))
    before, between, after = pattern.partition(_BETWEEN)
    if not between:
        yield from _format(identity, to_both(_without_edges(pattern)))
        return
    value, rest = _first_group(after[after.index(_ASSIGNED) + len(_ASSIGNED) :])
    value = to_both(f"(?i){value}")
    yield {"id": identity, "names": _names(before), "value": value}
    literals = find_literals(value)
    if literals.lead == 0 and all(len(hint) >= _LEAST_MARK for hint in literals.hints):
        yield from _format(identity, value)
    if rest.startswith("|"):
        yield from _format(identity, to_both(_without_edges(rest[1:])))


def _format(identity: str, pattern: str) -> Iterator[dict[str, Any]]:
    literals: Literals = find_literals(pattern)
    if literals.hints:
        yield {
            "id": identity,
            "hints": list(literals.hints),
            "pattern": pattern,
            "lead": literals.lead,
            "fold": literals.fold,
            "fixed": literals.fixed,
        }


def _names(before: str) -> list[str]:
    text = re.sub(r"\[(\w)\w\]", r"\1", _BEFORE.sub("", before))
    text = re.sub(r"\(\?[-a-z]{1,4}[:)]", " ", text)
    words = {re.sub(r"\[_-\]\?|[_.-]", " ", word).lower() for word in _WORD.findall(text)}
    return sorted(words - _EVERYDAY_WORDS)


def _without_edges(pattern: str) -> str:
    return re.sub(r"^((?:\(\?i\))?)\\b|\\b$", r"\1", pattern)


def _first_group(pattern: str) -> tuple[str, str]:
    end = _closing(pattern, 1) + 1
    return pattern[:end], pattern[end:]


def to_both(pattern: str) -> str:
    """Return an RE2 pattern as `re` reads it too: flags stand before the group that they are for."""
    pattern = pattern.replace("[[:alnum:]]", "[A-Za-z0-9]")
    while flag := re.search(r"\(\?([ims]+)\)", pattern):
        end = _closing(pattern, flag.end())
        inner = pattern[flag.end() : end]
        pattern = f"{pattern[: flag.start()]}(?{flag[1]}:{inner}){pattern[end:]}"
    return pattern


def _closing(pattern: str, start: int) -> int:
    """Return where the group that is open at `start` closes, or the pattern's end."""
    depth, bracket, i = 0, False, start
    while i < len(pattern):
        character = pattern[i]
        if character == "\\":
            i += 2
            continue
        if bracket:
            bracket = character != "]"
        elif character == "[":
            bracket = True
        elif character in "()":
            depth += 1 if character == "(" else -1
            if depth < 0:
                return i
        i += 1
    return i


def write_rules(rules_file: Path, license_file: Path, commit: str, folder: Path, today: str) -> Path:
    """Write what the rules say, and their license, among the generated facts of `folder`; return the path."""
    rules = read_rules(rules_file.read_text(encoding="utf-8"), commit)
    data = {"generated": today, "license": license_file.read_text(encoding="utf-8"), **rules}
    path = folder / "releases" / f"{NAME}.json"
    replace_file(path, json.dumps(data, indent=1) + "\n")
    return path


if __name__ == "__main__":
    import datetime

    from envdoctor.fact_files import find_folder

    rules, license_text, revision = sys.argv[1:]
    today = datetime.date.today().isoformat()
    print(write_rules(Path(rules), Path(license_text), revision, Path(find_folder()), today))  # noqa: T201
