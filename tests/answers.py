"""The record of every answer that a room's tests are given: each asks for what it is about, this is the rest.

A room's conftest says which functions answer and how an answer is told, in lines. With `ENVDOCTOR_RECORD=1
pytest -n0 tests/ROOM` the answers of the tests that ran are written anew: the diff says what is otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

MOST = 40
"""Answers of one test that are on record: a property or a table asks for thousands."""


class Answers:
    """Answers by test and by their number in it, one line of a file for each line of an answer."""

    def __init__(self, path: Path, asked: tuple[str, ...], told: Callable[[Any], list[str]]) -> None:
        self._path, self._asked, self._told = path, asked, told
        self._written: dict[str, list[str]] = {}

    @cached_property
    def _held(self) -> dict[str, list[str]]:
        held: dict[str, list[str]] = {}
        for line in self._path.read_text(encoding="utf-8").split("\n")[:-1]:
            name, _, said = line.partition("\t")
            held.setdefault(name, []).append(said)
        return held

    def compare(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType
    ) -> Iterator[None]:
        """Hold what a test is told against the record, once it has ended; none of a module that has one."""
        given: dict[str, list[str]] = {}
        folder = str(request.getfixturevalue("tmp_path")) if "tmp_path" in request.fixturenames else "\n"

        def plain(line: str) -> str:
            return line.replace(folder, "…").replace("\t", " | ").replace("\n", " ")

        def listening(function: Callable[..., Any]) -> Callable[..., Any]:
            def answered(*asked: Any, **how: Any) -> Any:
                answer = function(*asked, **how)
                if len(given) == MOST:
                    return answer
                name = plain(f"{request.path.name} {request.node.name} {len(given) + 1}")
                given[name] = [plain(line) for line in self._told(answer)] or ["nothing"]
                return answer

            return answered

        for module in () if hasattr(request.module, "RECORD") else (request.module, *modules):
            for name in self._asked:
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, listening(getattr(module, name)))
        yield
        if os.environ.get("ENVDOCTOR_RECORD"):
            self._written.update(given)
        else:
            other = [f"{name}: {said}" for name, said in given.items() if said != self._held.get(name)]
            assert not other, f"not as {self._path.name} has it (ENVDOCTOR_RECORD=1 writes it): {other}"

    def write(self) -> None:
        """Write the answers of the tests that ran, where that was asked."""
        if self._written:
            held = {**(self._held if self._path.exists() else {}), **self._written}
            lines = [f"{name}\t{said}" for name in sorted(held) for said in held[name]]
            self._path.write_text("\n".join(lines) + "\n", encoding="utf-8")
