"""Every input of every command, as something else than a file: told in a line, in bounded time and memory."""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import threading
from pathlib import Path

import pytest
from front import Front
from sent_facts import sent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's devices")

INPUTS: dict[str, list[str]] = {
    "a paste": ["diagnose", "--from", "{}"],
    "a paste for a bundle": ["bundle", "--preview", "--from", "{}"],
    "a log": ["bundle", "--preview", "--from", "{good}", "--log", "{}"],
    "a config": ["memory", "--model", "{}", "--gpu", "H100"],
    "a model's folder": ["memory", "--model", "{folder}", "--gpu", "H100"],
    "a DeepSpeed file": ["memory", "--model", "llama-3.1-8b", "--gpu", "H100", "--deepspeed", "{}"],
    "a profile's model": ["profile", "--model", "{}", "--gpu", "H100"],
    "a profile's target": ["profile", "--model", "llama-3.1-8b", "--target", "{}"],
    "requirements": ["pin", "-r", "{}", "--offline"],
    "a pin's target": ["pin", "torch", "--target", "{}", "--offline"],
    "why-not's requirements": ["why-not", "torch==2.9.0", "-r", "{}"],
    "a baseline": ["fleet", "--facts", "{nodes}", "--baseline", "{}"],
    "a node's file": ["fleet", "--facts", "{node_folder}"],
    "a site's expectations": ["fleet", "--facts", "{nodes}", "--expect", "{}"],
    "an interpreter": ["probe", "--python", "{}"],
    "a file to mend": ["fix", "--lockfile", "{}"],
    "a saved image": ["diagnose", "--image", "{}"],
    "one of several files": ["diagnose", "--each", "{}"],
    "a recording": ["bundle", "--from-watch", "{}", "--preview"],
}
MOST_MIB, MOST_S = 300, 40


def fifo(path: Path) -> None:
    os.mkfifo(path)


def never_ending(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


def sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(1 << 40)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def growing(path: Path) -> None:
    stream = path.open("wb")

    def grow() -> None:
        with stream:
            for _ in range(4000):
                stream.write(b"x" * 65_536)

    threading.Thread(target=grow, daemon=True).start()


def random_bytes(path: Path) -> None:
    path.symlink_to("/dev/urandom")


def deep(path: Path) -> None:
    path.write_text('{"schema": "envdoctor.facts/1", "model_type": ' + "[" * 200_000)


EVILS = [fifo, never_ending, listening, sparse, loop, growing, random_bytes, deep]


def words(arguments: list[str], evil: Path, folder: Path) -> list[str]:
    """The call, with a folder of a model or of nodes around what is evil where it asks for one."""
    places = {"good": folder / "good.json", "nodes": folder / "nodes"}
    for name, inside in (("folder", "config.json"), ("node_folder", "evil.json")):
        places[name] = folder / name / evil.name
        if "{" + name + "}" in arguments:
            places[name].mkdir(parents=True)
            (places[name] / "good.json").write_text(json.dumps(sent()))
            (places[name] / inside).symlink_to(evil)
    return [word.format(str(evil), **places) for word in arguments]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "nodes").mkdir()
    for place in (tmp_path / "good.json", tmp_path / "nodes" / "n1.json"):
        place.write_text(json.dumps(sent()))
    return tmp_path


def some_inputs(kind: str) -> dict[str, list[str]]:
    """All inputs when ENVDOCTOR_HOSTILE=all, else a few, others for each kind of evil."""
    if os.environ.get("ENVDOCTOR_HOSTILE") == "all":
        return INPUTS
    chosen = random.Random(kind).sample(list(INPUTS), 7 if kind in ("fifo", "never_ending") else 3)
    return {name: INPUTS[name] for name in chosen}


@pytest.fixture(scope="module")
def front():
    with Front() as started:
        yield started


@pytest.mark.parametrize("make", EVILS, ids=lambda make: make.__name__)
def test_what_is_no_file_is_told_in_a_line(make, folder, front):
    for number, (name, arguments) in enumerate(some_inputs(make.__name__).items()):
        evil = folder / f"evil{number}"
        make(evil)
        end = front.run(*words(arguments, evil, folder), cwd=folder)
        assert end.is_clean, (name, end)
        assert end.rss_mib < MOST_MIB, (name, end.rss_mib)
        assert end.cpu_s < MOST_S, (name, end.cpu_s)
        if name == "a node's file":
            assert {name for name in (b"good", b"evil") if name in end.out} == {b"good", b"evil"}, end
        elif (
            name == "one of several files" and end.status == 0
        ):  # files that are not for us lie in every repository
            assert b"NOT-JUDGED" in end.out, end
        elif name != "a log" and make not in (growing, sparse):
            assert end.status in (2, 3) or (name == "a paste" and end.status < 2), (name, end)
