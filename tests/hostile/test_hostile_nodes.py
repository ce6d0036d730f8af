"""Hostile node files beside good ones: each node has its result, and the good ones have all of theirs."""

from __future__ import annotations

import json
import os
import random
import sys

import pytest
from front import Front
from mutating import deep, mutated_bytes, mutated_json, mutated_text, written
from sent_facts import sent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")
COUNT = int(os.environ.get("ENVDOCTOR_NODES", "30"))
GOOD = 10
FORMATS = ("json", "text", "markdown", "html", "junit", "prometheus")
FIXED = (
    b"",
    b"\x00" * 1000,
    b"[" * 100_000,
    b'{"schema": "envdoctor.facts/1", "gpus": ' + b'{"a":' * 50_000,
    b'{"number":{}}',
    b'{"schema": "envdoctor.facts/1", "gpus": {"value": [1, {}, null, "x"], "source": ""}}',
    b'{"schema": "envdoctor.facts/1", "driver": {"cuda": {"value": 1e999, "source": ""}}}',
    b'{"schema": "envdoctor.facts/1", "origin": 1' + b"0" * 4000 + b"}",
    b'{"schema": "envdoctor.facts/1", "notes": [NaN]}',
    b'{"schema": "envdoctor.facts/1", "notes": "' + b"x" * 2_000_000 + b'"}',
    b'{"schema": "envdoctor.facts/2"}',
    b'{"schema": ["envdoctor.facts/1"]}',
    b"\xff\xfe{\x00}\x00",
    b"<html>login</html>",
    b"Traceback (most recent call last):\n",
)


def hostile(rng: random.Random) -> bytes:
    how = rng.random()
    if how < 0.15:
        return rng.choice(FIXED)
    if how < 0.75:
        return written(mutated_json(sent(), rng)).encode("utf-8", "surrogatepass")
    if how < 0.85:
        return mutated_text(written(sent()), rng).encode("utf-8", "surrogatepass")
    if how < 0.95:
        return mutated_bytes(written(sent()).encode(), rng)
    return written({**sent(), "notes": deep(rng.choice((10, 500)), "list")}).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("nodes")
    rng = random.Random(18)
    for number in range(COUNT):
        (place / f"bad{number}.json").write_bytes(hostile(rng))
    for number in range(GOOD):
        (place / f"good{number}.json").write_text(json.dumps({**sent(), "notes": ["well"]}))
    return place


@pytest.mark.parametrize("format", FORMATS if COUNT > 100 else FORMATS[:2])
def test_each_node_has_its_result(folder, format):
    with Front() as front:
        end = front.run("fleet", "--facts", ".", "--format", format, "--all", cwd=folder, limit_s=300)
    assert end.is_clean, end.err[-800:]
    assert end.status in (0, 1)
    assert end.rss_mib < 300 + COUNT // 4, end.rss_mib
    assert b"crashed" not in end.err
    if format != "json":
        assert b"good" in end.out
        return
    told = json.loads(end.out)
    groups = [group["nodes"] for group in told["groups"]]
    unreached = [one["nodes"] for one in told["unreached"]]
    assert sorted(_names(groups) + _names(unreached)) == sorted(
        [f"bad{n}" for n in range(COUNT)] + [f"good{n}" for n in range(GOOD)]
    )
    # A mutant may tell the same as a good node; what counts is that the good ones lack nothing.
    (together,) = (set(_names([nodes])) for nodes in groups if "good" in str(nodes))
    assert {f"good{n}" for n in range(GOOD)} <= together
    assert told["crashed"] == {}


def _names(groups: list) -> list[str]:
    from envdoctor.fleet.nodeset import expand

    return [name for nodes in groups for name in (nodes if isinstance(nodes, list) else expand(nodes))]
