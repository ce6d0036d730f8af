"""What a site says its nodes must be like: `--expect FILE`, tables of facts for nodes, cards, partitions."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError
from envdoctor.findings import Severity
from envdoctor.fleet.nodeset import expand
from envdoctor.inputs import read_input
from envdoctor.toml_text import parse_toml
from envdoctor.values import dataclass

MAX_FILE_BYTES = 4 << 20
KEYS = frozenset(("nodes", "gpu", "product", "partition", "severity", "facts", "why"))


@dataclass(frozen=True, slots=True)
class Expectation:
    """The facts that some nodes must have. Empty conditions hold for every node."""

    id: str
    facts: Mapping[str, str]
    severity: Severity
    cards: tuple[str, ...] = ()
    product: str = ""
    nodes: frozenset[str] = frozenset()
    partition: str = ""
    remedy: str = ""
    why: str = ""
    source: str = ""
    own: bool = False
    """True for a site's: what is not known does not meet it either."""

    def is_for(self, node: str, partitions: Collection[str]) -> bool:
        """True when its conditions on the node's name and on one of its partitions hold."""
        here = not self.partition or any(fnmatch.fnmatchcase(one, self.partition) for one in partitions)
        return here and (not self.nodes or node in self.nodes)


def read_expectations(path: Path) -> tuple[Expectation, ...]:
    """Return a site's expectations; raises InputError naming the file and the table that is wrong."""
    try:
        data = parse_toml(read_input(path, MAX_FILE_BYTES).decode("utf-8"))
    except InputError as error:
        raise InputError(f"--expect {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"--expect {path}: no TOML: {error}") from None
    tables = data.get("expect")
    if not isinstance(tables, list) or not tables or set(data) != {"expect"}:
        raise InputError(f"--expect {path}: it has no [[expect]] table, or something beside them")
    return tuple(_read_table(path, number, table) for number, table in enumerate(tables, 1))


def _read_table(path: Path, number: int, table: Any) -> Expectation:
    where = f"--expect {path}: [[expect]] {number}"
    facts = table.get("facts") if isinstance(table, dict) else None
    if not isinstance(facts, dict) or not facts:
        raise InputError(f"{where}: it names no facts")
    if unknown := sorted(set(table) - KEYS):
        raise InputError(f"{where}: {unknown[0]!r} is none of {', '.join(sorted(KEYS))}")
    texts = {key: table.get(key, "") for key in ("nodes", "gpu", "product", "partition", "why")}
    if wrong := next((key for key, value in texts.items() if not isinstance(value, str)), None):
        raise InputError(f"{where}: {wrong} is no text")
    try:
        severity = Severity(table.get("severity", "error"))
        nodes = frozenset(expand(texts["nodes"])) if texts["nodes"] else frozenset()
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    return Expectation(
        id=f"EXPECTED-{number}",
        facts={name: _wanted(f"{where}: {name}", value) for name, value in facts.items()},
        severity=severity,
        cards=(texts["gpu"],) if texts["gpu"] else (),
        product=texts["product"],
        nodes=nodes,
        partition=texts["partition"],
        why=texts["why"],
        source=str(path),
        own=True,
    )


def _wanted(where: str, value: object) -> str:
    if isinstance(value, list):
        return "|".join(_wanted(where, one) for one in value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        raise InputError(f"{where} is neither a text nor a number")
    return str(value)
