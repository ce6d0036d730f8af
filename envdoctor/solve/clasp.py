"""The one place that knows clingo: rules in, models out, through its library itself.

clingo's Python layer above the library takes as long to load as a small problem to solve, and its calls for
each rule and atom longer than the library's own: it is left out. The library's calls are those of `clingo.h`,
which lies beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from typing import Any


def _library() -> tuple[Any, Any]:
    """Return the library and how values get there; raises ImportError where clingo is not installed."""
    if "clingo" not in sys.modules and (found := PathFinder.find_spec("clingo")) is not None:
        bare = sys.modules["clingo"] = type(sys)("clingo")
        bare.__path__ = list(found.submodule_search_locations or ())
        try:
            from clingo import _internal
        finally:
            del sys.modules["clingo"]
    else:
        from clingo import _internal
    return _internal._lib, _internal._ffi


LIB, FFI = _library()


def _check(done: bool) -> None:
    """Raise what the library says went wrong: MemoryError or RuntimeError."""
    if not done:
        said = FFI.string(LIB.clingo_error_message()).decode()
        raise (MemoryError if LIB.clingo_error_code() == LIB.clingo_error_bad_alloc else RuntimeError)(said)


class Model:
    """A model, as long as no other was asked for."""

    def __init__(self, at: Any) -> None:
        self._at, self._told = at, FFI.new("bool*")

    def holds(self, atom: int) -> bool:
        """Return whether an atom is true."""
        LIB.clingo_model_is_true(self._at, atom, self._told)
        return bool(self._told[0])

    @property
    def is_best(self) -> bool:
        """True where it is proven that no model costs less: where nothing costs, of any."""
        size = FFI.new("size_t*")
        _check(LIB.clingo_model_cost_size(self._at, size))
        _check(LIB.clingo_model_optimality_proven(self._at, self._told))
        return bool(self._told[0]) or not size[0]


class Search:
    """A search under way."""

    def __init__(self, at: Any) -> None:
        self._at = at

    def models(self) -> Iterator[Model]:
        """Yield each model that is found."""
        found = FFI.new("clingo_model_t**")
        while True:
            _check(LIB.clingo_solve_handle_resume(self._at))
            _check(LIB.clingo_solve_handle_model(self._at, found))
            if found[0] == FFI.NULL:
                return
            yield Model(found[0])

    def has(self, what: str) -> bool:
        """Return whether it ended `satisfiable`, `exhausted` (all was looked at) or `interrupted`."""
        told = FFI.new("clingo_solve_result_bitset_t*")
        _check(LIB.clingo_solve_handle_get(self._at, told))
        return bool(told[0] & getattr(LIB, f"clingo_solve_result_{what}"))


class Control:
    """clingo, with the rules that it was given."""

    def __init__(self, options: Sequence[str]) -> None:
        words = [FFI.new("char[]", one.encode()) for one in options]
        made = FFI.new("clingo_control_t**")
        _check(LIB.clingo_control_new(words, len(words), FFI.NULL, FFI.NULL, 20, made))
        self._at = FFI.gc(made[0], LIB.clingo_control_free)

    def add(
        self,
        choices: Iterable[tuple[Sequence[int], Sequence[int]]],
        rules: Iterable[tuple[Sequence[int], Sequence[int]]],
        apart: Iterable[tuple[int, Sequence[int]]],
        costs: Iterable[tuple[int, Sequence[tuple[int, int]]]],
    ) -> None:
        """Add rules: heads of which any (choices) or one holds where all of a body do.

        Of those `apart`, each with an atom of its own, no two hold; `costs` are atoms with weights, by level.
        """
        at, rule = FFI.new("clingo_backend_t**"), LIB.clingo_backend_rule
        _check(LIB.clingo_control_backend(self._at, at))
        backend = at[0]
        _check(LIB.clingo_backend_begin(backend))
        for kind, some in ((True, choices), (False, rules)):
            _check(all(rule(backend, kind, head, len(head), body, len(body)) for head, body in some))
        for own, others in apart:
            weights = [(one, 1) for one in others]
            _check(LIB.clingo_backend_weight_rule(backend, False, [own], 1, 2, weights, len(weights)))
            _check(rule(backend, False, (), 0, (own,), 1))
        for level, weighed in costs:
            _check(LIB.clingo_backend_minimize(backend, level, weighed, len(weighed)))
        _check(LIB.clingo_backend_end(backend))

    def configure(self, part: str, name: str, value: str) -> None:
        """Set one of clingo's options, such as `solve` and `solve_limit`."""
        at, key = FFI.new("clingo_configuration_t**"), FFI.new("clingo_id_t*")
        _check(LIB.clingo_control_configuration(self._at, at))
        _check(LIB.clingo_configuration_root(at[0], key))
        for one in (part, name):
            _check(LIB.clingo_configuration_map_at(at[0], key[0], one.encode(), key))
        _check(LIB.clingo_configuration_value_set(at[0], key[0], value.encode()))

    @contextmanager
    def search(self, assumed: Sequence[int] = ()) -> Iterator[Search]:
        """Search, with literals that hold only in this search."""
        handle = FFI.new("clingo_solve_handle_t**")
        mode = LIB.clingo_solve_mode_yield
        _check(LIB.clingo_control_solve(self._at, mode, assumed, len(assumed), FFI.NULL, FFI.NULL, handle))
        try:
            yield Search(handle[0])
        finally:
            _check(LIB.clingo_solve_handle_close(handle[0]))
