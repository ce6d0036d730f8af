"""What a release imports though no metadata asks for it is pinned with it, and a clash over it is told."""

from __future__ import annotations

from pathlib import Path

import solve_world as world

from envdoctor.matrix import Matrix, load_matrix
from envdoctor.solve.goal import Goal
from envdoctor.solve.pinning import pin
from envdoctor.solve.summary import summary_lines

ROW = {
    "id": "TOOLS-GONE",
    "source": "https://example.com",
    "checked_on": "2026-11-22",
    "basis": "wheel inspection",
    "severity": "error",
    "summary": "frame {frame} imports what only tools up to 81 has",
    "cause": "tools 82 removed it.",
    "when": {"frame": "<2"},
    "unless": {"tools": "<82"},
    "needed": True,
}
MATRIX = Matrix({"row": [ROW]}, "test", "2026-01-01", Path("nowhere"))
WORLD = {
    "frame": {"1.0": {"requires": []}, "2.0": {"requires": []}},
    "tools": {"80": {}, "81": {}, "82": {}, "83": {}},
}


def asked(*requests: str) -> Goal:
    return world.goal(world.world(WORLD), requests, matrix=MATRIX)


def test_it_is_pinned_with_the_reason() -> None:
    pins = {one.name: one for one in pin(asked("frame==1.0")).pins}
    assert pins["tools"].version == "81"
    assert pins["tools"].because == ("frame 1.0 needs <82, which its metadata does not say (TOOLS-GONE)",)


def test_spacy_gets_the_click_that_typer_brings_no_longer() -> None:
    facts = world.world(
        {"spacy": {"3.8.14": {"requires": ["typer"]}}, "typer": {"0.27.0": {}}, "click": {"8.5.1": {}}}
    )
    assert world.versions(world.goal(facts, ["spacy"], matrix=load_matrix()))["click"] == "8.5.1"


def test_what_serves_as_well_is_not_given_a_second_one() -> None:
    matrix = load_matrix()
    facts = world.world(
        {
            "insightface": {"0.7.3": {"requires": []}},
            "rembg": {"2.0.75": {"requires": ["onnxruntime-gpu ; extra == 'gpu'"]}},
            "onnxruntime": {"1.32.0": {}},
            "onnxruntime-gpu": {"1.32.0": {}},
        }
    )

    def pinned(*requests: str) -> set[str]:
        return {*world.versions(world.goal(facts, requests, matrix=matrix))}

    assert pinned("insightface") == {"insightface", "onnxruntime"}
    assert pinned("insightface", "onnxruntime-gpu") == {"insightface", "onnxruntime-gpu"}
    assert pinned("rembg[gpu]") == {"rembg", "onnxruntime-gpu"}


def test_a_release_that_does_without_it_brings_nothing() -> None:
    assert world.versions(asked("frame")) == {"frame": "2.0"}


def test_what_is_asked_for_goes_before_a_newer_one() -> None:
    told = next(one for one in pin(asked("frame==1.0", "tools")).pins if one.name == "tools")
    assert told.version == "81"
    assert "not 83: frame 1.0 needs tools<82 (TOOLS-GONE)" in told.because


def test_a_clash_over_it_names_the_row() -> None:
    answer = pin(asked("frame==1.0", "tools==83"))
    assert answer.status == "conflict"
    cause = answer.causes[-1]
    assert (cause.text, cause.source) == ("frame 1.0 needs tools<82", "TOOLS-GONE: https://example.com")
    assert {way.drop for way in answer.relaxations} == {"==1.0 of frame", "==83 of tools"}


def test_the_command_names_what_no_metadata_would_bring() -> None:
    alone, named = pin(asked("frame==1.0")), pin(asked("frame==1.0", "tools"))
    assert "uv pip install frame==1.0 tools -c pins.txt" in "\n".join(summary_lines(alone, "pins.txt"))
    assert "uv pip install frame==1.0 tools -c pins.txt" in "\n".join(summary_lines(named, "pins.txt"))


def test_the_command_of_a_long_request_is_as_it_was_typed() -> None:
    names = [f"name{number}" for number in range(13)]
    told = pin(world.goal(world.world({name: {"1": []} for name in names}), names))
    assert "uv pip install -r long.txt -c pins.txt" in "\n".join(
        summary_lines(told, "pins.txt", ["-r long.txt"])
    )
