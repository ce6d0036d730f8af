"""What small functions of the readers answer, at both sides of what decides them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from envdoctor.errors import InputError
from envdoctor.facts import Distribution, Facts, Observed, Symptom
from envdoctor.matrix import load_matrix
from envdoctor.pastes.console import UNAVAILABLE, _available
from envdoctor.pastes.datasets import Survey, _look_at_turns, _structure
from envdoctor.pastes.files import read_files
from envdoctor.pastes.gpus import find_gpus
from envdoctor.pastes.installers import parse_installers
from envdoctor.pastes.listings import _installed
from envdoctor.pastes.own import parse_own
from envdoctor.pastes.platforms import parse_platform
from envdoctor.pastes.prose import _NO_FACT, _beside, _stated
from envdoctor.pastes.resolvers import parse_resolvers
from envdoctor.pastes.sentences import _POST, _is_a_persons, _is_post
from envdoctor.pastes.sightings import HEAD, TAIL, Paste, Sighting
from envdoctor.pastes.warned import _message

RECORD = None  # each answer is asserted here
LEXICON = load_matrix().lexicon


def paste_of(*lines: str) -> Paste:
    return Paste([*lines], packages=load_matrix().package_names)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a.py:3: UserWarning: slow path", (" slow path", "a.py", True)),
        ("it runs well", ("", "", False)),
        (
            "this may be slow because it is deprecated",
            ("this may be slow because it is deprecated", "", False),
        ),
    ],
)
def test_what_a_line_warns_of(line: str, said: tuple[str, str, bool]) -> None:
    text, file, logged = _message(line)
    assert (text.strip(), file, logged) == (said[0].strip(), said[1], said[2]) or not text


@pytest.mark.parametrize(
    "line",
    [
        "Requirement already satisfied: torch in /env (2.6.0)",
        "Downloading torch-2.6.0-cp311-cp311-manylinux1_x86_64.whl (766.7 MB)",
        "Successfully installed torch-2.6.0",
        "/env/lib/python3.11/site-packages/torch-2.6.0.dist-info",
    ],
)
def test_what_an_installer_tells_is_exact(line: str) -> None:
    (told,) = [one.value for one in parse_installers(paste_of("$ pip install torch", line))]
    assert isinstance(told, Distribution)
    assert (told.name, told.version, told.specifier) == ("torch", "2.6.0", "")


@pytest.mark.parametrize(
    ("location", "editable"), [(None, False), ("pypi", False), ("/src/trl", True), ("C:\\src\\trl", True)]
)
def test_what_is_listed_with_a_folder_is_editable(location: str | None, editable: bool) -> None:
    (told,) = [one.value for one in _installed("trl", "0.15.0", "pip list", location)]
    assert told.editable is editable


@pytest.mark.parametrize(
    ("text", "os"),
    [
        *[("macOS-14.5-arm64", "macos"), ("Darwin Kernel Version 23.5.0", "macos")],
        *[("Windows-10-10.0.22631", "windows"), ("Linux-6.8.0-x86_64 microsoft-standard-WSL2", "linux")],
        *[("Windows (WSL)", "linux"), ("Ubuntu 22.04", "linux")],
    ],
)
def test_the_system_that_a_platform_line_tells(text: str, os: str) -> None:
    assert [one.value for one in parse_platform(text, "line 1") if one.place == "host.os"] == [os]


def test_cards_of_running_text_are_numbered_as_they_stand() -> None:
    found = find_gpus("one RTX 4090 and 2x A100", "line 1", LEXICON.cards)
    assert [(gpu.index, gpu.name) for gpu in found] == [(0, "RTX 4090"), (1, "A100"), (2, "A100")]


def test_a_prompt_s_answer_of_cuda_is_torchs() -> None:
    assert list(_available("True", "line 2")) == [Sighting("build", ("torch", {"available": True}), "line 2")]
    (told,) = _available("False", "line 2")
    assert told.value == Symptom(UNAVAILABLE, "torch.cuda.is_available() False", "line 2")


@pytest.mark.parametrize(
    ("line", "stated"),
    [
        ("transformers 4.51 is here. Please upgrade to torch 2.6!", "transformers 4.51 is here"),
        (
            "transformers 4.51 of [the release](https://a.example/torch-2.5.0) is here",
            "transformers 4.51 of [the release] is here",
        ),
    ],
)
def test_what_a_line_states(line: str, stated: str) -> None:
    told = _stated(line, _NO_FACT)
    assert told.rstrip(".") == stated


def test_a_demand_set_against_what_is_there_tells_what_is_there_alone() -> None:
    said = "trl requires transformers>=4.46, but you have transformers 4.40.0, but please install torch 2.6"
    told = _beside(said, _NO_FACT)
    assert "4.40.0" in told
    assert "2.6" not in told


@pytest.mark.parametrize(
    ("line", "person"),
    [
        ("I tried it on two machines and it hangs", True),
        ("    raise ValueError(message)", False),
        ("The last thing that I saw before it stopped was this:", True),
        ("Traceback of what I saw when it stopped: ", True),
        ("装好以后就报错了", True),
        ("one two three x1 x2", True),
        ("one two x1 x2", False),
    ],
)
def test_lines_that_a_person_wrote(line: str, person: bool) -> None:
    assert _is_a_persons(line) is person


def test_a_short_text_is_a_post_and_a_line_more_of_a_log_is_none() -> None:
    log = [f"step={n} loss=0.{n}" for n in range(_POST + 1)]
    assert _is_post(log[:_POST])
    assert not _is_post(log)


@pytest.mark.parametrize(
    ("rows", "structure"),
    [
        ([{"conversations": []}] * 2, "sharegpt"),
        ([{"messages": []}], "messages"),
        ([{"instruction": "a"}], None),
        ([{"instruction": "a", "input": "b", "output": "c"}], "alpaca"),
        ([{"prompt": "a"}], None),
    ],
)
def test_the_structure_of_rows(rows: list[dict[str, object]], structure: str | None) -> None:
    assert _structure(rows) == structure


@pytest.mark.parametrize(
    ("turns", "fault"),
    [
        (None, True),
        ([], True),
        ([{"role": "user"}, "hello"], True),
        ([{"role": "user"}, {"role": "assistant"}], False),
    ],
)
def test_a_conversation_is_a_list_of_turns(turns: object, fault: bool) -> None:
    survey = Survey(structure="messages")
    _look_at_turns(turns, survey)
    assert bool(survey.faults["structure"]) is fault


@pytest.mark.parametrize("count", [HEAD + TAIL, HEAD + TAIL + 1, HEAD + TAIL + 50])
def test_of_a_long_paste_the_head_and_the_tail_are_read_as_prose(count: int) -> None:
    lines = [f"{'abcdefgh'[n % 8]}{chr(0x4E00 + n % 20000)}{n // 20000} said" for n in range(count)]
    paste = paste_of(*lines)
    told = [index for index, _ in paste.loose()]
    kept = [*range(min(count, HEAD)), *range(max(HEAD, count - TAIL), count)]
    assert told == kept
    assert paste.passed_over == max(0, count - HEAD - TAIL)


def test_an_explanation_of_uv_goes_on_behind_a_blank_line_only_within_a_sentence() -> None:
    begin = "  × No solution found when resolving dependencies:"
    first = "  ╰─▶ Because trl==0.8.0 depends on torch>=2.5 and you require torch==2.4,"
    rest = "      and you require trl==0.8.0, we can conclude that your requirements are unsatisfiable."
    for between, count in ((), 2), (("",), 2), (("", ""), 1):
        told = [one.value.captured["need"] for one in parse_resolvers(paste_of(begin, first, *between, rest))]
        assert told.count("trl") == count - 1, between


FACTS = {"schema": "envdoctor.facts/1", "origin": "declared"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"schema": "envdoctor.diagnosis/1", "facts": FACTS}),
        json.dumps({**FACTS, "environment": {}}),
        json.dumps(FACTS),
    ],
)
def test_our_own_facts_stand_alone_or_in_an_answer(text: str) -> None:
    assert isinstance(parse_own(text), Facts)


def test_standard_input_is_named_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(InputError, match="<stdin>"):
        read_files(["-"], LEXICON)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"torch 2.6.0\n")))
    other = tmp_path / "b.txt"
    other.write_text("trl 0.15.0\n")
    told = read_files(["-", str(other)], LEXICON).environment.distributions
    assert told["torch"].source.startswith("<stdin>: ")
    assert told["trl"].source.startswith("b.txt: ")


def test_a_file_that_only_begins_like_an_archive_is_read_as_text(tmp_path: Path) -> None:
    folder = tmp_path / ".zipped"
    folder.mkdir()
    text = folder / "log.txt"
    text.write_text("torch 2.6.0\n")
    assert read_files([str(text)], LEXICON).environment.distributions["torch"].version == "2.6.0"
    (tmp_path / "b.zip").write_text("torch 2.6.0\n")
    with pytest.raises(InputError, match="bundle"):
        read_files([str(tmp_path / "b.zip")], LEXICON)


def test_conda_s_inner_packages_of_a_report_are_no_distributions(read: Callable[[str], Facts]) -> None:
    report = (
        "Collecting environment information...\nPyTorch version: 2.3.0\n\nVersions of relevant libraries:\n"
        "[conda] _libgcc_mutex             0.1                 main    conda-forge\n"
        "[conda] numpy                     1.26.4              py310_0    conda-forge\n"
        "[conda] libopenblas               0.3.27              0    conda-forge\n"
    )
    assert set(read(report).environment.distributions) == {"torch", "numpy"}


def test_the_files_that_a_dockerfile_installs_from_lie_beside_it(tmp_path: Path) -> None:
    (tmp_path / "X").mkdir()
    (tmp_path / "X" / "reqs.txt").write_text("trl==0.15.0\n")
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text("FROM python:3.11\nCOPY . /app\nRUN pip install -r /X/reqs.txt\n")
    facts = read_files([str(dockerfile)], LEXICON)
    assert facts.environment.distributions["trl"].version == "0.15.0"


def test_an_image_is_told_behind_a_colon_and_a_sentence_has_none(read: Callable[[str], Facts]) -> None:
    told = read("I use vllm/vllm-openai:v0.8.5 for that\n").environment.distributions
    assert told["vllm"].version == "0.8.5"
    assert isinstance(read("torch 2.6.0\n").environment.python, Observed) is False
