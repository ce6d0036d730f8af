"""Reads the kinds of secrets that gitleaks, trufflehog and detect-secrets look for, from checkouts of theirs.

Nothing of them is kept here: a pattern is read, secrets are drawn from it, and the drawn ones are planted.
"""

from __future__ import annotations

import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "gathering"), str(ROOT / "tests" / "bundle")]

from pattern_literals import find_literals  # noqa: E402
from secret_grid import Rule  # noqa: E402
from secret_rules import read_rules, to_both  # noqa: E402

_CALL = re.compile(r"(?P<name>\w{1,40})\s{1,40}:?=\s{0,4}regexp\.MustCompile\((?P<rest>[^\n]{1,1000})")
_PREFIX = re.compile(r"detectors\.PrefixRegex\(\[\]string\{(?P<words>[^}]{0,400})\}\)\s{0,4}\+\s{0,4}")
_PLAIN = re.compile(r"[`\"](?P<pattern>.{4,900})[`\"]\)")
_WORD = re.compile(r"\"([A-Za-z][A-Za-z0-9 ._-]{2,40})\"")
# Patterns of other things than secrets: numbers of accounts, hosts, mail addresses.
_OTHER = re.compile(
    r"(?i)^(?:.*(?:id|ids|url|uri|domain|host|name|email|account|user|region|endpoint|server|app|org|project|"
    r"tenant|subdomain|site|instance|login|version|company|org|workspace|store|zone|base|email)(?:pat|pattern|re|"
    r"regex)?|.*(?:id|url|domain|host)pat\w*)$"
)
_EVERYDAY = frozenset(("key", "token", "secret", "api", "id", "password", "access", "apikey", "auth"))
# Patterns of addresses and files, and those that hold the word beside the secret.
_ADDRESS = re.compile(
    r"http|:/|:\\/|jdbc|\\\.[a-z.\\]{2,20}\\\.(?:com?|io|net|org|app|dev|ai)\b|PRIVATE|secret\||Key\)"
)
_EMPTY = re.compile(r"\\b|^\^|\$$|\(\?<?[!=][^()]{0,60}\)")
_GROUP = re.compile(r"(?<![\\\[])\((?!\?)")
_LEAST, _LEAST_MARKED, _LEAST_MARK = 8, 16, 3


def is_one_word(rule: Rule) -> bool:
    """Tell whether what a rule looks for is a word, and so can be planted anywhere."""
    r = random.Random(1)
    try:
        return all(rule.draw(r) for _ in range(50))
    except ValueError:
        return False


def of_gitleaks(checkout: Path) -> Iterator[Rule]:
    """Yield the kinds of `config/gitleaks.toml`."""
    rules = read_rules((checkout / "config" / "gitleaks.toml").read_text(encoding="utf-8"), "checkout")
    for row in rules["formats"]:
        yield Rule(f"gitleaks:{row['id']}", (row["id"].split("-")[0],), row["pattern"], True)
    for row in rules["named"]:
        yield Rule(f"gitleaks:{row['id']}", tuple(row["names"]), row["value"], False)


def of_trufflehog(checkout: Path) -> Iterator[Rule]:
    """Yield the kinds of `pkg/detectors/*/*.go`: those beside a word, and those that bear a mark."""
    for path in sorted((checkout / "pkg" / "detectors").rglob("*.go")):
        if path.name.endswith("_test.go"):
            continue
        for match in _CALL.finditer(path.read_text(encoding="utf-8")):
            if not _OTHER.match(match["name"]):
                yield from _read_go(path, match["rest"])


def _read_go(path: Path, rest: str) -> Iterator[Rule]:
    prefix = _PREFIX.match(rest)
    plain = _PLAIN.match(rest[prefix.end() :] if prefix else rest)
    if plain is None:
        return
    kind = path.parent.name if path.parent.name not in ("v1", "v2") else path.parent.parent.name
    names = [word.lower() for word in _WORD.findall(prefix["words"])] if prefix else [kind]
    names = [name for name in names if name not in _EVERYDAY] or [kind]
    yield from _rule(f"trufflehog:{kind}", tuple(names), plain["pattern"], prefix is None)


def of_detect_secrets(checkout: Path) -> Iterator[Rule]:
    """Yield the kinds of `detect_secrets/plugins/*.py` that are a pattern."""
    for path in sorted((checkout / "detect_secrets" / "plugins").glob("*.py")):
        if path.stem in ("keyword", "ip_public", "private_key", "basic_auth", "jwt"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile" and node.args:
                try:
                    pattern = ast.literal_eval(node.args[0])
                except ValueError:
                    continue
                vendor = path.stem.removesuffix("_token").removesuffix("_key")
                yield from _rule(f"detect-secrets:{path.stem}", (vendor,), pattern, True)


def _rule(kind: str, names: tuple[str, ...], pattern: str, alone: bool) -> Iterator[Rule]:
    """Yield the rule of a pattern that `re` reads and that draws something long enough to be a secret."""
    try:
        value = to_both(_EMPTY.sub("", pattern).replace("[[:alnum:]]", "[A-Za-z0-9]"))
        re.compile(value)
    except re.error:
        return
    width = _least_width(value)
    if width >= _LEAST and not _ADDRESS.search(pattern):
        marks = find_literals(value)
        marked = bool(marks.hints) and min(map(len, marks.hints)) >= _LEAST_MARK
        value = _named(value)
        yield Rule(kind, names, value, alone and marked and width >= _LEAST_MARKED)


def _named(pattern: str) -> str:
    """Return the pattern with its first group, which is the secret, called `v`."""
    return _GROUP.sub(lambda match: match[0] + "?P<v>", pattern, count=1)


def _least_width(pattern: str) -> int:
    if sys.version_info >= (3, 11):
        from re import _parser as parser  # type: ignore[attr-defined]
    else:
        import sre_parse as parser
    return int(parser.parse(pattern).getwidth()[0])
