"""The merge: texts of facts from many nodes become groups of equal nodes, each distinct text decoded once.

Most nodes of a cluster say the same. So a text is cut at its top-level members without being parsed, and a
member that was seen before costs one look-up. Only the GPUs and the host differ a little from node to node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from envdoctor.facts import Facts, FactsFormatError, Verdict, from_json
from envdoctor.facts.codec import decode
from envdoctor.facts.model import SCHEMA
from envdoctor.fleet.canonical import canonical, distinguishing, mask, without_name
from envdoctor.fleet.nodeset import in_order, natural_key
from envdoctor.fleet.own import Own, own_of_json, read_own
from envdoctor.inputs import parse_json

_OPENING, _BETWEEN, _CLOSING = b'{\n "', b',\n "', b"\n}"
_REMEMBERED = 4096
_SCATTERED = 8
"""From so many values on, and more than half as many as nodes, a variable is each node's own."""


class NotFacts(ValueError):
    """A text is no facts of ours; the message says what it is."""


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes whose facts are equal in all that equal nodes have in common."""

    nodes: tuple[str, ...]
    facts: Facts
    json: Mapping[str, Any]
    """The common facts in plain JSON terms."""


@dataclass(frozen=True, slots=True)
class Unreached:
    """Nodes without an answer that could be used, and why."""

    nodes: tuple[str, ...]
    reason: str


@dataclass(slots=True)
class Merge:
    """Takes nodes' texts one by one; what it keeps grows with the distinct facts, not with the texts."""

    _groups: dict[tuple[int, ...], list[str]] = field(default_factory=dict)
    _unreached: dict[str, list[str]] = field(default_factory=dict)
    _sections: list[tuple[str, Any]] = field(default_factory=list)
    _ids: dict[tuple[str, str], int] = field(default_factory=dict)
    _remembered: dict[bytes, int] = field(default_factory=dict)
    own: dict[str, Own] = field(default_factory=dict)
    """What each node has for itself."""
    speeds: dict[str, tuple[Verdict, ...]] = field(default_factory=dict)
    """The verdicts of each node that measured a speed."""
    asked: dict[str, tuple[float, float]] = field(default_factory=dict)
    """When a node was asked and when it had answered, by our clock, in seconds since 1970."""
    scattered: dict[str, list[str]] = field(default_factory=dict)
    """Variables that are each node's own, with the nodes that set them; known with the result."""

    def add(self, node: str, text: bytes) -> None:
        """Take a node's facts; what is none makes the node unreached, with the reason."""
        try:
            key = tuple(sorted(self._split(node, text) or self._parse(node, text)))
        except NotFacts as error:
            self.add_unreached(node, str(error))
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            self.add_unreached(node, f"its facts cannot be read: {type(error).__name__}")
        else:
            self._groups.setdefault(key, []).append(node)

    def add_unreached(self, node: str, reason: str) -> None:
        """Take a node that gave no facts."""
        self._unreached.setdefault(reason, []).append(node)

    def result(self) -> tuple[tuple[Group, ...], tuple[Unreached, ...]]:
        """Return the groups, largest first, and the unreached nodes by reason."""
        groups = []
        unreached = {reason: list(nodes) for reason, nodes in self._unreached.items()}
        decoded: dict[int, Any] = {}
        for key, nodes in self._gathered().items():
            try:
                groups.append(self._group(key, nodes, decoded))
            except FactsFormatError as error:
                unreached.setdefault(f"its facts cannot be read: {error}", []).extend(nodes)
            except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
                unreached.setdefault(f"its facts cannot be read: {type(error).__name__}", []).extend(nodes)
        groups.sort(key=lambda g: (-len(g.nodes), natural_key(g.nodes[0])))
        return tuple(groups), tuple(Unreached(in_order(n), r) for r, n in unreached.items())

    def _group(self, key: tuple[int, ...], nodes: list[str], decoded: dict[int, Any]) -> Group:
        """Return one group; a section that groups share is decoded once and shared too."""
        data = dict(self._sections[i] for i in key)
        from_json({"schema": data.get("schema")})
        for identity in key:
            name, value = self._sections[identity]
            if name != "schema" and identity not in decoded:
                decoded[identity] = getattr(from_json({"schema": SCHEMA, name: value}), name)
        parts = {self._sections[i][0]: decoded[i] for i in key if i in decoded}
        return Group(in_order(nodes), Facts(**parts), data)

    def _gathered(self) -> dict[tuple[int, ...], list[str]]:
        """Return the nodes by their sections, without the variables that are each node's own."""
        nodes: dict[int, list[str]] = {}
        for key, some in self._groups.items():
            for identity in key:
                if self._sections[identity][0] == "variables":
                    nodes.setdefault(identity, []).extend(some)
        self.scattered = self._scattered(nodes)
        if not self.scattered:
            return self._groups
        common = {identity: self._without(identity, self.scattered) for identity in nodes}
        gathered: dict[tuple[int, ...], list[str]] = {}
        for key, some in self._groups.items():
            gathered.setdefault(tuple(sorted(common.get(i, i) for i in key)), []).extend(some)
        return gathered

    def _scattered(self, nodes: Mapping[int, list[str]]) -> dict[str, list[str]]:
        values: dict[str, set[str]] = {}
        setting: dict[str, list[int]] = {}
        for identity in nodes if len(nodes) >= _SCATTERED else ():
            variables = self._sections[identity][1]
            for name, value in variables.items() if isinstance(variables, dict) else ():
                values.setdefault(name, set()).add(str(value))
                setting.setdefault(name, []).append(identity)
        found: dict[str, list[str]] = {}
        for name, told in values.items():
            if len(told) >= _SCATTERED:
                setters = [node for identity in setting[name] for node in nodes[identity]]
                if len(told) * 2 > len(setters):
                    found[name] = setters
        return found

    def _without(self, identity: int, names: Iterable[str]) -> int:
        section, value = self._sections[identity]
        left = {k: v for k, v in value.items() if k not in names} if isinstance(value, dict) else value
        return self._identify(section, left)

    def _split(self, node: str, text: bytes) -> list[int] | None:
        """Return the ids of the sections of a text laid out as the probe does, None for any other layout."""
        text = text.strip()
        if not (text.startswith(_OPENING) and text.endswith(_CLOSING)):
            return None
        found = []
        own = {b"gpus": b"", b"host": b""}
        for member in text[len(_OPENING) : -len(_CLOSING)].split(_BETWEEN):
            name = member[: member.find(b'"')]
            if name in own:
                own[name] = member
            elif name == b"verdicts" and b'"speed"' in member:
                self._keep_speeds(node, parse_json(b'{"' + member + b"}"))
            member = without_name(node, name, member)
            masked = mask(name, member)
            known = self._remembered.get(masked)
            if known is None:
                known = self._remember(masked, member)
                if known is None:
                    return None
            if known >= 0:
                found.append(known)
        self.own[node] = read_own(own[b"gpus"], own[b"host"])
        return found

    def _remember(self, masked: bytes, member: bytes) -> int | None:
        try:
            parsed = parse_json(b'{"' + member + b"}")
        except ValueError:
            return None
        if len(parsed) != 1:
            return None
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()
        ((name, value),) = parsed.items()
        self._remembered[masked] = identity = self._identify(name, value)
        return identity

    def _identify(self, name: str, value: Any) -> int:
        """Return the number of a section's common part, -1 when nothing of it is common."""
        common = canonical(name, value)
        if common is None:
            return -1
        key = (name, json.dumps(distinguishing(name, common), sort_keys=True))
        identity = self._ids.setdefault(key, len(self._sections))
        if identity == len(self._sections):
            self._sections.append((name, common))
        return identity

    def _parse(self, node: str, text: bytes) -> list[int]:
        """Return the ids of the sections of any facts JSON, or of the facts in a diagnosis."""
        if not text.strip():
            raise NotFacts("it answered nothing")
        try:
            data = parse_json(text)
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise NotFacts(f"it answered no facts but {_opening_words(text)}") from None
        except ValueError as error:
            raise NotFacts(f"it answered JSON that none writes: {error}") from None
        if isinstance(data, dict) and isinstance(data.get("facts"), dict):
            data = data["facts"]
        if not isinstance(data, dict) or "schema" not in data:
            raise NotFacts(f"it answered no facts but {_opening_words(text)}")
        self.own[node] = own_of_json(data)
        self._keep_speeds(node, data)
        named = ((k, _renamed(node, k, v)) for k, v in data.items())
        return [i for i in (self._identify(k, v) for k, v in named) if i >= 0]

    def _keep_speeds(self, node: str, data: Mapping[str, Any]) -> None:
        """Keep a node's verdicts with a speed; raises NotFacts where they are none."""
        told = data.get("verdicts")
        measured = (
            [one for one in told if isinstance(one, dict) and "speed" in one]
            if isinstance(told, list)
            else []
        )
        try:
            if measured:
                self.speeds[node] = tuple(decode(Verdict, one, ("verdicts",)) for one in measured)
        except FactsFormatError as error:
            raise NotFacts(f"its facts cannot be read: {error}") from None


def _renamed(node: str, section: str, value: Any) -> Any:
    text = json.dumps(value).encode()
    common = without_name(node, section.encode(), text)
    return value if common is text else parse_json(common)


def _opening_words(text: bytes) -> str:
    return repr(" ".join(text[:200].decode("utf-8", "replace").split())[:60])
