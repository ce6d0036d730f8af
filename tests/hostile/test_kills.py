"""A command killed while it writes leaves the old file or the new one, never a part, and a next run works.

Some are killed at a moment of time, some at each thing they do with a file. ENVDOCTOR_KILLS says how many.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
from pathlib import Path

import pytest
from fake_index import FakeIndex
from front import Front

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")
KILLS = int(os.environ.get("ENVDOCTOR_KILLS", "2"))
"""For each command: half of them at a moment, half at an event."""
MACHINE = Path(__file__).parents[1] / "machines" / "healthy-4090-driver610-trl.json"
OLD = b"what stood there before\n"
LEFT_BEHIND = re.compile(r"\.envdoctor-[0-9a-f]{16}")
WRITERS = {
    "rules": "rules --format json -o OUT",
    "diagnose": "diagnose --from facts.json --format html -o OUT",
    "memory": "memory --model llama-3.1-8b --gpu H100 --format html -o OUT",
    "pin": "pin numpy --python-version 3.12 --platform x86_64-manylinux_2_35 -o OUT",
    "why-not": "why-not torch==2.4.0 --gpu B200 --format html -o OUT",
    "bundle": "bundle --from facts.json --force -o OUT",
    "fleet": "fleet --facts nodes --format html -o OUT",
    "profile": "profile --model llama-3.1-8b --method lora --gpu H100 --for trl -o OUT",
}


@pytest.fixture(scope="module")
def front():
    with Front() as started:
        yield started


@pytest.fixture
def work(tmp_path):
    (tmp_path / "nodes").mkdir()
    for place in (tmp_path / "facts.json", tmp_path / "nodes" / "n1.json"):
        place.write_text(MACHINE.read_text(encoding="utf-8"))
    (tmp_path / "place").mkdir()
    return tmp_path


def held(place: Path) -> dict[str, bytes]:
    """What stands in a folder, without what a killed process left under a name that none would look at."""
    files = (path for path in place.rglob("*") if path.is_file())
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in files
        if not any(LEFT_BEHIND.fullmatch(part) for part in path.relative_to(place).parts)
    }


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("former", [True, False], ids=["replaced", "new"])
def test_a_killed_command_tears_nothing(front, work, name, former):
    words = WRITERS[name].replace("OUT", "place/out").split()
    place, rng = work / "place", random.Random(f"{name} {former}")
    is_folder = name == "profile"

    def run(**how):
        for path in sorted(place.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        if former and is_folder:
            (place / "out").mkdir()
            (place / "out" / "mine.txt").write_bytes(OLD)
        elif former:
            (place / "out").write_bytes(OLD)
        start = held(place)
        return start, front.run(*words, cwd=work, **how), held(place)

    old, counted, new = run(kill_event=0)
    assert counted.is_clean, counted
    assert new != old, counted
    events = counted.err.count(b"event\n")
    for number in range(KILLS):
        if number % 2:
            how = {"kill_event": rng.randint(1, events)}
        else:
            how = {"kill_after_s": rng.uniform(0.0, 1.2 * counted.cpu_s)}
        start, end, left = run(**how)
        assert end.status == -signal.SIGKILL or end.status == counted.status, (how, end)
        assert _same(left, start) or _same(left, new), (how, end, sorted(left))
    assert _same(run()[2], new)


@pytest.mark.parametrize("former", [True, False], ids=["replaced", "new"])
def test_a_killed_update_leaves_each_record_old_or_new(front, work, former):
    store, rng = work / "place", random.Random(f"update {former}")
    index = FakeIndex()
    index.add_wheel("alpha", "1.0", "beta>=1")
    index.add_wheel("beta", "1.0")
    words = ["matrix", "update", "--package", "alpha", "--index-url", index.url, "--store", str(store)]
    start: dict[str, bytes] = {}
    if former:
        front.run(*words, cwd=work)
        start = held(store)
        index.add_wheel("alpha", "2.0", "beta>=1")
        index.add_wheel("beta", "2.0")

    def run(**how):
        for path in store.iterdir():
            path.unlink()
        for name, data in start.items():
            (store / name).write_bytes(data)
        return front.run(*words, cwd=work, **how), held(store)

    try:
        counted, new = run(kill_event=0)
        assert counted.is_clean, counted
        assert {"alpha.json", "beta.json"} <= new.keys()
        events = counted.err.count(b"event\n")
        for number in range(KILLS):
            moment = {"kill_after_s": rng.uniform(0.0, 2 * counted.cpu_s)}
            end, left = run(**({"kill_event": rng.randint(1, events)} if number % 2 else moment))
            assert end.status in (-signal.SIGKILL, counted.status), end
            for name, data in left.items():
                assert data in (start.get(name), new[name]), (name, end)
            assert start.keys() <= left.keys()
            front.run(*words, cwd=work)
            assert held(store) == new
    finally:
        index.close()


def _same(one: dict[str, bytes], other: dict[str, bytes]) -> bool:
    """Bundles tell when they were made, and profiles may: of those the names and the wholeness count."""
    return one.keys() == other.keys() and all(
        one[name] == other[name] or (one[name] != OLD and _is_whole(one[name], other[name])) for name in one
    )


def _is_whole(one: bytes, other: bytes) -> bool:
    return abs(len(one) - len(other)) <= 64 and one[-24:].strip()[-8:] == other[-24:].strip()[-8:]
