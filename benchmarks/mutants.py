"""Would the tests notice? `python benchmarks/mutants.py [ROOM...] [--sample 60] [--seed 1] [--kept FOLDER]`.

Draws mutants of a room's functions (`mutating.py`) and runs against each the room's tests that enter its
function, until one fails: the fast ones and those that noticed others first. Room and tests are imported
once; every mutant lives in a forked child. A mutant that only time ends counts as noticed; one that no test
runs through, as not, nor one that lives for `--patience` seconds of tests (CPU, as measured without mutants).
`mutants_equivalent.toml` names those that change nothing that can be seen, and says why.

Why no library: mutmut leaves every decorated function alone (our rules are decorated), cosmic-ray starts the
whole test command for each mutant.
"""

from __future__ import annotations

import argparse
import builtins
import functools
import gc
import importlib
import json
import os
import pkgutil
import random
import resource
import signal
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

import pytest
from mutating import (
    Mutant,
    edits_in,
    function_lines,
    put_in,
    put_in_counters,
    read_mutant,
    running_functions,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
_ABOVE = ("diagnosis", "fixing", "fleet", "several", "watch")
_ABOVE_RULES = (*_ABOVE, "online", "plan", "upgrading")


class Room(NamedTuple):
    """A room, the tests about it, and the rooms that stand on it: what they keep may be of a mutant."""

    package: str
    tests: list[str]
    above: tuple[str, ...]


ROOMS = {
    "rules": Room("rules", ["tests/rules"], _ABOVE_RULES),
    "solve": Room("solve", ["tests/solve", "tests/plan"], _ABOVE_RULES),
    "memory": Room(
        "memory", ["tests/memory", "tests/profile"], (*_ABOVE_RULES, "harvest", "profile", "rules", "solve")
    ),
    "redaction": Room("bundling", ["tests/bundle"], (*_ABOVE, "pastes")),
    "pastes": Room("pastes", ["tests/pastes", "tests/images", "tests/locks", "tests/github"], _ABOVE),
}
_ENTER = "_function_entered"
ELSEWHERE = {"slice_child.py"}
"""Files that another interpreter runs, beside torch: what a test here imports of them is little."""


@dataclass
class Ran:
    """What one run of the tests without mutants showed."""

    seconds: dict[str, float]
    """CPU seconds of each test that passed."""
    by_line: dict[str, dict[int, list[str]]]
    """Tests that enter a function, by file and its line."""

    def breadth(self, path: Path) -> Counter[str]:
        """Return how many of a file's functions each test enters."""
        return Counter(test for tests in self.by_line.get(str(path), {}).values() for test in tests)


class Result(NamedTuple):
    """What became of a mutant: `noticed`, `timed out`, `survived`, `not run`, `not put in`."""

    mutant: Mutant
    outcome: str
    tests: int


def main() -> int:
    """Print the score of each room and the mutants that no test noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=10.0)
    parser.add_argument(
        "--tests", nargs="+", help="what these files notice, in place of all the room's tests"
    )
    parser.add_argument("--kept", type=Path, default=Path(tempfile.gettempdir()) / "envdoctor-mutants")
    asked = parser.parse_args()
    for room in asked.rooms or ROOMS:
        status = _in_child(lambda room=room: Session(room, asked).run())
        if status:
            return status
    return 0


class Session:
    """One room's tests, collected once, and its mutants: a plugin of pytest."""

    def __init__(self, room: str, asked: argparse.Namespace) -> None:
        package, tests, above = ROOMS[room]
        self.room, self.asked, self.tests = room, asked, asked.tests or tests
        self.paths = _imported(f"envdoctor.{package}")
        self.forgetful = tuple(f"envdoctor.{name}" for name in (package, *above))
        self.told = os.fdopen(os.dup(1), "w")
        self.failed: set[str] = set()
        self.stop_at_failure = False
        self.noticed_by: Counter[str] = Counter()
        self.notes = asked.kept / f"{room}-noticed-by"

    def run(self) -> int:
        """Run pytest with this plugin."""
        words = ["-p", "no:cacheprovider", "-p", "no:terminal", "-o", "addopts=", "-o", "timeout=0"]
        return int(pytest.main([*self.tests, *words], plugins=[self]))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run mutants where pytest would run its tests."""
        gc.unfreeze()  # the tests freeze what was collected: functions and caches are found through gc
        items = {item.nodeid: item for item in session.items}
        _leave_unshrunk(session.items)
        ran = self._ran(items)
        functions = running_functions(self.paths)
        chosen = self._chosen()
        results = [self._judged(each, functions[each.path], ran, items) for each in chosen]
        self._tell(results)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure, and end a mutant's child with it."""
        if report.failed:
            self.failed.add(report.nodeid)
            if self.stop_at_failure:
                self.notes.write_text(report.nodeid)
                os._exit(1)

    def _chosen(self) -> list[Mutant]:
        all_ = [(path, number) for path in self.paths for number in range(edits_in(path))]
        drawn = random.Random(self.asked.seed).sample(all_, min(self.asked.sample, len(all_)))
        self._say(f"{self.room}: {len(drawn)} of {len(all_)} mutants in {len(self.paths)} files")
        return [read_mutant(path, number) for path, number in drawn]

    def _judged(
        self, mutant: Mutant, functions: list[FunctionType], ran: Ran, items: dict[str, pytest.Item]
    ) -> Result:
        begins = function_lines(mutant.path)[mutant.line]
        names = ran.by_line.get(str(mutant.path), {}).get(begins, [])
        ordered = self._in_order(set(names) & set(ran.seconds), ran, mutant.path)
        tests = _within(ordered, ran, self.asked.patience)
        if not tests:
            return Result(mutant, "not run", 0)
        status = _in_child(lambda: self._run_mutant(mutant, functions, [items[t] for t in tests]))
        self.noticed_by[self.notes.read_text()] += 1
        outcome = {0: "survived", 1: "noticed", 2: "not put in"}.get(status, "timed out")
        self._say(f"  {outcome:10} {_told(mutant)}")
        return Result(mutant, outcome, len(tests))

    def _in_order(self, tests: set[str], ran: Ran, path: Path) -> list[str]:
        """Return the tests by what a notice costs: the fast ones, those that noticed others, the widest.

        Of the many cases of one test a few come early: what the first ones miss the next may miss, too.
        """
        breadth = ran.breadth(path)
        widest = max(tests, key=lambda t: breadth[t], default="")
        costs = {t: ran.seconds[t] / (0.2 + self.noticed_by[t] + (t == widest)) for t in tests}
        before: Counter[str] = Counter()
        for test in sorted(tests, key=lambda t: (costs[t], t)):
            function = test.partition("[")[0]
            before[function] += 1
            costs[test] *= before[function]
        return sorted(tests, key=lambda t: (costs[t], t))

    def _run_mutant(self, mutant: Mutant, functions: list[FunctionType], items: list[pytest.Item]) -> int:
        limit = int(self.asked.patience * 3) + 20
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        self.notes.write_text("")
        if not put_in(mutant, functions):
            return 2
        _clear(_caches(self.forgetful))
        self.stop_at_failure = True
        _run(items)
        return 0

    def _ran(self, items: dict[str, pytest.Item]) -> Ran:
        """Return the run without mutants; of test files that are as they were, from what was kept."""
        self.asked.kept.mkdir(parents=True, exist_ok=True)
        kept = {path: self._kept(path) for path in {item.path for item in items.values()}}
        missing = {name: item for name, item in items.items() if not kept[item.path].exists()}
        if missing:
            self._say(f"{self.room}: one run of {len(missing)} tests without mutants")
            _in_child(lambda: self._measure(missing, kept))
        return _read_ran(kept.values())

    def _kept(self, test_file: Path) -> Path:
        beside = [p for folder in self.tests for p in sorted(Path(folder).rglob("*.py"))]
        files = [*self.paths, *(p for p in beside if not p.name.startswith("test_")), test_file]
        return self.asked.kept / f"{self.room}-{_state(files)}.json"

    def _measure(self, items: dict[str, pytest.Item], kept: dict[Path, Path]) -> int:
        entered: set[tuple[str, int]] = set()
        seconds: dict[str, float] = {}
        entered_by: dict[str, list[tuple[str, int]]] = {}
        kept_by_functions = _caches(self.forgetful)
        for path, functions in running_functions(self.paths).items():
            put_in_counters(path, functions, _ENTER)
        setattr(builtins, _ENTER, lambda path, line: entered.add((path, line)))

        def before(item: pytest.Item) -> None:
            _clear(kept_by_functions)
            entered.clear()
            seconds[item.nodeid] = time.process_time()

        def after(item: pytest.Item) -> None:
            seconds[item.nodeid] = time.process_time() - seconds[item.nodeid]
            entered_by[item.nodeid] = sorted(entered)

        _run(list(items.values()), before, after)
        for path in {item.path for item in items.values()}:
            names = {name for name, item in items.items() if item.path == path}
            passed = {t: seconds[t] for t in names - self.failed}
            lines: dict[str, dict[int, list[str]]] = {}
            for test in sorted(names):
                for file, line in entered_by[test]:
                    lines.setdefault(file, {}).setdefault(line, []).append(test)
            kept[path].with_suffix(".part").write_text(json.dumps({"seconds": passed, "by_line": lines}))
            kept[path].with_suffix(".part").replace(kept[path])
        return 0

    def _tell(self, results: list[Result]) -> None:
        equivalent = _equivalents()
        counted = [r for r in results if r.outcome != "not put in" and r.mutant.identity not in equivalent]
        noticed = [r for r in counted if r.outcome in ("noticed", "timed out")]
        share = 100 * len(noticed) / len(counted) if counted else 0.0
        beside = f"{len(results) - len(counted)} equivalent or not put in"
        for result in counted:
            if result not in noticed:
                self._say(f"  {result.outcome} by {result.tests} tests: {_told(result.mutant)}")
        self._say(f"{self.room}: {len(noticed)} of {len(counted)} noticed, {share:.1f} %; {beside}")

    def _say(self, line: str) -> None:
        print(line, file=self.told, flush=True)


def _leave_unshrunk(items: list[pytest.Item]) -> None:
    """Let no property look for a smaller example: one that fails is enough."""
    from hypothesis import Phase, is_hypothesis_test, settings  # pytest's plugin imports it first

    for item in items:
        test = getattr(item, "obj", None)
        if is_hypothesis_test(test):
            test = getattr(test, "__func__", test)
            given = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(given, phases=(Phase.explicit, Phase.generate))


def _run(
    items: list[pytest.Item],
    before: Callable[[pytest.Item], None] | None = None,
    after: Callable[[pytest.Item], None] | None = None,
) -> None:
    for item, following in zip(items, [*items[1:], None], strict=True):
        if before:
            before(item)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if after:
            after(item)


def _in_child(work: Callable[[], int]) -> int:
    """Return the status of a forked child that does the work; a signal's is 128 and more."""
    if child := os.fork():
        try:
            _, status = os.waitpid(child, 0)
        except KeyboardInterrupt:
            os.kill(child, signal.SIGKILL)
            raise
        return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128
    status = 3
    with suppress(BaseException):
        status = work()
    os._exit(status)


def _caches(rooms: tuple[str, ...]) -> list[functools._lru_cache_wrapper[object]]:
    """Return the caches of the rooms' functions: what they keep may be of a mutant, or of another test."""
    wrappers = (thing for thing in gc.get_objects() if isinstance(thing, functools._lru_cache_wrapper))
    return [each for each in wrappers if str(each.__module__).startswith(rooms)]


def _clear(caches: Iterable[functools._lru_cache_wrapper[object]]) -> None:
    for each in caches:
        each.cache_clear()


def _read_ran(kept: Iterable[Path]) -> Ran:
    """Put together what was kept of each test file."""
    ran = Ran({}, {})
    for path in kept:
        raw = json.loads(path.read_text())
        ran.seconds.update(raw["seconds"])
        for file, lines in raw["by_line"].items():
            of_file = ran.by_line.setdefault(file, {})
            for number, tests in lines.items():
                of_file.setdefault(int(number), []).extend(tests)
    return ran


def _within(tests: list[str], ran: Ran, patience: float) -> list[str]:
    """Return the first tests that end within the patience; one at least."""
    spent, kept = 0.0, []
    for test in tests:
        if kept and spent + ran.seconds[test] > patience:
            continue
        spent += ran.seconds[test]
        kept.append(test)
    return kept


def _imported(package: str) -> list[Path]:
    """Import every module of the package and return their files."""
    room = importlib.import_module(package)
    names = [m.name for m in pkgutil.walk_packages(room.__path__, f"{package}.")]
    paths = [Path(str(importlib.import_module(name).__file__)) for name in names]
    return [path for path in paths if path.name not in ELSEWHERE]


def _state(files: list[Path]) -> str:
    """Return a name that changes with what the files hold."""
    return f"{zlib.crc32(b''.join(path.read_bytes() for path in files)):08x}"


def _equivalents() -> set[tuple[str, ...]]:
    raw = tomllib.loads((HERE / "mutants_equivalent.toml").read_text())
    return {tuple(e[k] for k in ("file", "function", "before", "after")) for e in raw.get("mutant", [])}


def _told(mutant: Mutant) -> str:
    where = f"{mutant.path.parent.name}/{mutant.path.name}:{mutant.line} {mutant.function}"
    return f"{where}\n      - {mutant.before}\n      + {mutant.after}"


if __name__ == "__main__":
    sys.exit(main())
