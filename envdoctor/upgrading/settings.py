"""Keys of configuration files and options of launch commands that a release no longer knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envdoctor.matrix import Matrix
from envdoctor.profile.keys import KeyFacts, key_facts
from envdoctor.upgrading.judging import Break, Judge, Move
from envdoctor.upgrading.sources import KEYED
from envdoctor.upgrading.uses import Kind, Place, Use

FEW = 3
"""Keys of a framework's own that make a file one of its settings."""
_KEY = re.compile(r"^\s{0,12}[\"']?([a-z][a-z0-9_]{2,60})[\"']?\s{0,4}[:=](?!=)")
_OPTION = re.compile(r"(?<!\S)--([a-zA-Z][\w-]{2,60})")
_LAUNCHES: Mapping[str, tuple[str, ...]] = {
    "transformers": ("run_", "train", "finetune", "deepspeed", "torchrun", "accelerate launch"),
    "trl": ("trl ", "sft", "dpo", "grpo"),
    "vllm": ("vllm serve", "vllm.entrypoints", "vllm bench"),
    "llamafactory": ("llamafactory-cli", "llamafactory.cli"),
    "ms-swift": ("swift ",),
    "axolotl": ("axolotl",),
}


def judge_settings(matrix: Matrix, moves: Mapping[str, Move], suffix: str, text: str) -> Iterator[Break]:
    """Yield the keys or options in a text that the framework's new release lacks."""
    for framework, move in moves.items():
        facts = key_facts(matrix, framework)
        if facts is None:
            continue
        judge = Judge(matrix, moves)
        found = _keys(facts, text) if suffix in KEYED else _options(framework, text)
        for name, place in found:
            if since := _gone(facts, name, move):
                use = Use(Kind.KEYWORD, framework, place, name)
                yield Break(use, f"{framework}: {name}", since, renamed(judge, name, move))


def renamed(judge: Judge, key: str, move: Move) -> str:
    """Return the key that took another's place, where a row says so."""
    for owner in ("TrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig", "LLM"):
        row = judge._row(f"{owner}({key})", move)
        if row is not None:
            return row.new
    return ""


def _gone(facts: KeyFacts, key: str, move: Move) -> str:
    """Return the release since which a key is gone; empty where it stands or never stood."""
    if facts.has(key, str(move.new)) is not False or facts.span(key) is None:
        return ""
    if move.old is not None and facts.has(key, str(move.old)) is False:
        return ""
    _, after = facts.span(key) or ("", None)
    return after or ""


def _keys(facts: KeyFacts, text: str) -> Iterator[tuple[str, Place]]:
    lines = text.split("\n")
    found = [(m, n) for n, line in enumerate(lines, 1) if (m := _KEY.match(line))]
    known = {m[1] for m, _ in found if m[1] in facts.fields and "_" in m[1]}
    if len(known) >= FEW:
        yield from ((m[1], Place(n, m.start(1), m.end(1))) for m, n in found)


def _options(framework: str, text: str) -> Iterator[tuple[str, Place]]:
    """Yield the options of commands that start the framework; a command goes on after a backslash."""
    ours = False
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("-"):
            ours = any(word in stripped for word in _LAUNCHES.get(framework, ()))
        if ours:
            for match in _OPTION.finditer(line):
                yield match[1].replace("-", "_"), Place(number, match.start(1), match.end(1))
