"""Readers at the edge of what they take: the longest, the largest, the first, and what stands beside it."""

from __future__ import annotations

import io

import pytest

from envdoctor.matrix.load import load_matrix
from envdoctor.pastes.errors import _chained, _Raised
from envdoctor.pastes.files import HEAD, WHOLE, _looks_binary, decode, read_window
from envdoctor.pastes.gpus import _number, _parts, find_gpus, parse_gpus
from envdoctor.pastes.installs import parse_installs
from envdoctor.pastes.labelled import HANDLERS, _cuda
from envdoctor.pastes.listings import parse_listings
from envdoctor.pastes.nvidia_smi import _gpu_of_row
from envdoctor.pastes.platforms import parse_container, parse_platform
from envdoctor.pastes.requirements import parse_requirements
from envdoctor.pastes.resolvers import parse_resolvers
from envdoctor.pastes.settings import _plain
from envdoctor.pastes.sightings import (
    LINE_LIMIT,
    Paste,
    Sighting,
    distribution_sightings,
    line_templates,
    plain_lines,
)
from envdoctor.pastes.symptoms import _spans, _window

CARDS = load_matrix().lexicon.cards


def told(label: str, value: str) -> list[object]:
    """What a value tells behind its label."""
    return [sighting.value for sighting in HANDLERS[label](value, "line 1")]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *[("8x H100", 8), ("8 x H100", 8), ("8张 H100", 8), ("2 H100", 2), ("4 GPUs H100", 4)],
        *[("H100 x8", 8), ("H100 (x8)", 8), ("H100 *16 GPUs", 16), ("H100 8x", 8)],
        *[("256x H100", 256), ("257x H100", 256), ("9999x H100", 256), ("0x H100", 1), ("1x H100", 1)],
    ],
)
def test_how_many_cards_a_line_tells(text: str, count: int) -> None:
    assert [one for one, _ in _parts(text)] == [count]


def test_parts_of_a_line_keep_their_own_counts_and_names() -> None:
    assert _parts("2x H100, 4x A100") == [(2, "H100"), (4, "A100")]
    assert _parts("GPU 0: H100\\nGPU 1: A100") == [(1, "H100"), (1, "A100")]
    assert _parts("`RTX 4090 (24 GB, PCIe)`") == [(1, "RTX 4090 (24 GB, PCIe)")]
    assert _parts(f"{'x ' * 300}H100") == [(1, ("x " * 300).strip())]  # 600 characters and no more
    assert _parts("") == []


@pytest.mark.parametrize(
    ("told", "count"),
    [("0", 1), ("1", 1), ("63", 63), ("64", 64), ("65", 64), ("八", 8), ("两", 2), ("单", 1)],
)
def test_a_number_beside_a_name_is_no_more_than_a_rack(told: str, count: int) -> None:
    assert _number(told) == count


@pytest.mark.parametrize(
    ("text", "name", "gib", "capability"),
    [
        ("H100", "H100", None, None),
        ("H100 80GB", "H100", 80, None),
        ("24 GB", None, 24, None),
        ("sm_90", None, None, "9.0"),
    ],
)
def test_a_card_is_told_by_name_memory_or_capability(
    text: str, name: str | None, gib: int | None, capability: str | None
) -> None:
    (gpu,) = parse_gpus(text, "line 1", CARDS)
    assert gpu.name == name
    assert gpu.memory_total_bytes == (gib and gib << 30)
    assert (str(gpu.compute_capability) if gpu.compute_capability else None) == capability


def test_words_that_tell_of_no_card_are_none() -> None:
    assert parse_gpus("a fast one", "line 1", CARDS) == ()


def test_cards_in_a_sentence_count_by_what_stands_before_and_behind() -> None:
    assert len(find_gpus("we train on 4 x NVIDIA A100 here", "line 1", CARDS)) == 4
    assert len(find_gpus("we train on NVIDIA A100 x 4 here", "line 1", CARDS)) == 4
    assert len(find_gpus("we train on an NVIDIA A100 here", "line 1", CARDS)) == 1


@pytest.mark.parametrize(
    ("told", "index"), [("7", 7), ("999", 999), ("1000", 5), ("", 5), ("-1", 5), ("²", 5), ("x", 5)]
)
def test_a_row_of_nvidia_smi_has_its_own_number_or_its_place(told: str, index: int) -> None:
    assert _gpu_of_row(5, {"index": told, "name": "H100"}, "line 1").index == index


@pytest.mark.parametrize(
    ("value", "version"),
    [
        *[("12.4", "12.4"), ("v12.4", "12.4"), ("cu124", "12.4"), ("12.10", "12.10")],
        *[("12", "12.0"), ("v11", "11.0"), ("7", "7.0"), ("5", None), ("2024", None), ("x", None)],
    ],
)
def test_a_cuda_version_is_told_in_full_or_by_its_major(value: str, version: str | None) -> None:
    found = _cuda(value)
    assert (str(found) if found else None) == version


@pytest.mark.parametrize(
    ("value", "version"),
    [
        *[("8902", "8.9.2"), ("8907", "8.9.7"), ("7605", "7.6.5"), ("8100", "8.1.0")],
        *[("90100", "9.1.0"), ("91002", "9.10.2"), ("90501", "9.5.1")],
        *[("9.1.0", "9.1.0"), ("v8.9.2.26", "8.9.2.26"), ("9.1.0.70", "9.1.0.70")],
    ],
)
def test_cudnn_numbers_are_versions(value: str, version: str) -> None:
    assert [library.version for library in told("cudnn", value)] == [version]


def test_cudnn_of_three_digits_is_none() -> None:
    assert told("cudnn", "902") == []


@pytest.mark.parametrize(
    ("label", "value", "expected"),
    [
        ("cxx11 abi", "True", [("torch", {"cxx11_abi": True})]),
        ("cxx11 abi", "1", [("torch", {"cxx11_abi": True})]),
        ("cxx11 abi", "False", [("torch", {"cxx11_abi": False})]),
        ("cxx11 abi", "0", [("torch", {"cxx11_abi": False})]),
        ("cxx11 abi", "unknown", []),
        ("number of gpus", "8", [8]),
        ("number of gpus", "999", [999]),
        ("number of gpus", "1000", []),
        ("number of gpus", "8.5", []),
        ("python", "3.11.7 (main)", ["3.11.7"]),
        ("python", "none", []),
    ],
)
def test_a_labelled_value(label: str, value: str, expected: list[object]) -> None:
    assert told(label, value) == expected


def test_a_range_of_python_is_a_note_of_sixty_characters() -> None:
    (note,) = told("python", f">=3{'9' * 80}")
    assert note == f"Python is told only as a range: >=3{'9' * 57} (line 1)"


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("550.54.14", {"driver.version": "550.54.14"}),
        ("550.54.14 (CUDA version: 12.4)", {"driver.version": "550.54.14", "driver.cuda": "12.4"}),
        ("open kernel module 570.86.10", {"driver.version": "570.86.10", "driver.module": "open"}),
        ("kernel module 570.86.10", {"driver.version": "570.86.10", "driver.module": "proprietary"}),
    ],
)
def test_a_driver_s_line_tells_version_cuda_and_module(value: str, kinds: dict[str, str]) -> None:
    assert {one.place: str(one.value) for one in HANDLERS["driver"](value, "line 1")} == kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Linux-6.5.0-x86_64-with-glibc2.35", {"os": "linux", "glibc": "2.35", "arch": "x86_64"}),
        ("macOS-14.2-arm64-arm-64bit", {"os": "macos", "arch": "aarch64"}),
        ("Windows-10-10.0.22631-SP0 AMD64", {"os": "windows", "arch": "x86_64"}),
        ("Linux aarch64", {"os": "linux", "arch": "aarch64"}),
        ("Windows with WSL2", {"os": "linux", "wsl": "True"}),
    ],
)
def test_a_platform_line_tells_system_libc_and_machine(text: str, kinds: dict[str, str]) -> None:
    found = {one.place.removeprefix("host."): str(one.value) for one in parse_platform(text, "line 1")}
    assert {kind: found.get(kind) for kind in kinds} == kinds
    assert ("wsl" in found) is ("wsl" in kinds)


@pytest.mark.parametrize(
    ("text", "container"),
    [
        *[("docker", "docker"), ("k8s", "kubernetes"), ("apptainer", "singularity"), ("none", "none")],
        ("NGC PyTorch container 24.05", "nvcr.io/nvidia/pytorch:24.05-py3"),
        ("`vllm/vllm-openai:v0.9.1`", "vllm/vllm-openai:v0.9.1"),
    ],
)
def test_a_container_is_told_by_engine_or_image(text: str, container: str) -> None:
    assert Sighting("host.container", container, "line 1") in list(parse_container(text, "line 1"))


@pytest.mark.parametrize(
    ("told", "runs"),
    [
        ("/v/lib/python3.11/site-packages/flash_attn/x.py", True),
        ("/v/lib/python3.11/dist-packages/flash_attn/x.py", True),
        ("/v/lib/python3.11/site-packages/flash-attn/x.py", False),
        ("/v/lib/python3.11/site-packages/flash_attn_3/x.py", False),
        ("", False),
    ],
)
def test_what_a_traceback_runs_through_is_installed_in_the_release_asked_for(told: str, runs: bool) -> None:
    paste = Paste(["pip install flash-attn==2.6.3"], packages=load_matrix().package_names)
    *_, found = parse_installs(paste, [*paste.lines, f'  File "{told}", line 1, in f'])
    assert (found.value.version, found.value.specifier) == (("2.6.3", "") if runs else (None, "==2.6.3"))


def test_lines_that_ask_for_packages_are_claimed_and_no_others() -> None:
    paste = Paste(["torch>=2.1,<3", "some words", "vllm", "triton>=3"], file_name="requirements.txt")
    found = {one.value.name: one.value.specifier for one in parse_requirements(paste)}
    assert found == {"torch": "<3,>=2.1", "vllm": "", "triton": ">=3"}
    assert paste.claimed == {0, 2, 3}
    loose = Paste(["torch>=2.1,<3", "vllm", "nobody-knows-this>=3"], packages=load_matrix().package_names)
    assert [one.value.name for one in parse_requirements(loose)] == ["torch"]
    assert loose.claimed == {0}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        *[(True, "true"), (False, "false"), ([1, 2], "1,2"), (("a", "b"), "a,b"), (0.5, "0.5")],
        *[(" 'x', ", "x"), ('"x"', "x"), ("`x`,", "x"), ("x" * 1001, "x" * 1000)],
    ],
)
def test_a_setting_s_value_without_what_wraps_it(value: object, plain: str) -> None:
    assert _plain(value) == plain


@pytest.mark.parametrize(
    ("begin", "end", "spans"),
    [
        (0, 3, [(0, 0, 3)]),
        (2, 7, [(0, 2, 7), (1, 0, 2)]),
        (5, 6, [(1, 0, 1)]),
        (6, 11, [(1, 1, 6), (2, 0, 1)]),
    ],
)
def test_what_a_signature_covers_line_by_line(
    begin: int, end: int, spans: list[tuple[int, int, int]]
) -> None:
    assert list(_spans((0, 5, 10), begin, end)) == spans


def test_a_signature_is_tried_in_its_line_or_also_in_its_neighbours() -> None:
    text = "".join(f"line {n}\n" for n in range(8))
    starts = [n * 7 for n in range(8)]
    assert text[slice(*_window(text, starts, 2, 14, False))] == "line 2"
    assert (
        text[slice(*_window(text, starts, 2, 14, True))] == "line 1\nline 2\nline 3\nline 4\nline 5\nline 6"
    )
    assert text[slice(*_window(text, starts, 0, 0, True))] == "line 0\nline 1\nline 2\nline 3\nline 4"
    assert text[slice(*_window(text, starts, 7, 49, False))] == "line 7\n"


@pytest.mark.parametrize(
    ("where", "origin", "version"),
    [
        ("git+https://github.com/a/b@main", "vcs", None),
        ("https://github.com/a/b.git", "vcs", None),
        ("file:///wheels/b-1.0-py3-none-any.whl", "file", "1.0"),
        ("https://example.org/b-2.1%2Bcu121-py3-none-any.whl", "url", "2.1+cu121"),
        ("https://example.org/b-2.1%2bcu121-py3-none-any.whl", "url", "2.1+cu121"),
    ],
)
def test_where_a_frozen_package_came_from(where: str, origin: str, version: str | None) -> None:
    paste = Paste([f"b @ {where}"])
    found = next(one for one in parse_listings(paste) if one.place == "distribution")
    assert (found.value.name, found.value.origin, found.value.version) == ("b", origin, version)


@pytest.mark.parametrize("size", [0, 1, WHOLE - 1, WHOLE])
def test_a_file_of_four_mebibytes_is_read_whole(size: int) -> None:
    data, left_out = read_window(io.BytesIO(b"x" * size))
    assert (len(data), left_out) == (size, 0)


def test_of_a_larger_file_the_first_mebibyte_is_whole() -> None:
    text = b"start\n" + b"y\n" * (WHOLE // 2)
    data, left_out = read_window(io.BytesIO(text))
    assert data[:HEAD] == text[:HEAD]
    assert left_out == len(text) - len(data) > 0


def test_a_text_begins_behind_its_byte_order_mark() -> None:
    assert decode(b"\xef\xbb\xbftorch") == decode("torch".encode("utf-16")) == decode(b"torch") == "torch"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\r\nb\rc\nd", ["a", "b", "c", "d"]),
        ("**torch 2.6**\n**x** y", ["torch 2.6", "**x** y"]),
        ("x ** 2", ["x ** 2"]),
        ("\x1b[31mError\x1b[0m: x", ["Error: x"]),
        ("> quoted\n> > twice", ["quoted", "twice"]),
        ("<b>torch</b> 2.6", ["torch 2.6"]),
        ("a &lt; b &amp;&amp; c", ["a < b && c"]),
        ("torch\u00a02.6", ["torch 2.6"]),
        ("٣.١١", ["3.11"]),
        ("", [""]),
    ],
)
def test_a_text_as_plain_lines(text: str, lines: list[str]) -> None:
    assert [line.strip() for line in plain_lines(text)] == lines


def test_a_line_has_its_limit() -> None:
    assert [len(line) for line in plain_lines("x" * (LINE_LIMIT + 1) + "\ny")] == [LINE_LIMIT, 1]


@pytest.mark.parametrize(
    ("text", "version", "specifier", "build"),
    [
        ("2.3.1+cu121", "2.3.1+cu121", "", {"cuda": "12.1", "variant": "cu121"}),
        ("<0.46", None, "<0.46", None),
        ("0.14.x", None, "==0.14.*", None),
        ("2.1 (CPU)", None, "==2.1.*", None),
    ],
)
def test_a_version_as_told_makes_a_distribution_and_its_build(
    text: str, version: str | None, specifier: str, build: dict[str, str] | None
) -> None:
    found = {one.place: one.value for one in distribution_sightings("Torch", text, "line 1")}
    assert (found["distribution"].name, found["distribution"].version) == ("torch", version)
    assert found["distribution"].specifier == specifier
    assert build is None or found["build"] == ("torch", build)


def test_lines_alike_but_for_their_digits_have_one_template() -> None:
    assert line_templates(["Step 1 of 9", "step 12 of 99", "done"]) == [b"step  of ", b"step  of ", b"done"]


def test_a_freeze_that_was_cut_anywhere_is_not_whole() -> None:
    lines = [f"package-{letter}{more}==1.0" for letter in "abcdefghijklmnopqrst" for more in "abcd"]

    def whole(lines: list[str]) -> bool:
        return any(one.place == "complete" for one in parse_listings(Paste(lines)))

    assert whole(lines)
    assert not whole([*lines[:40], "...", *lines[40:]])
    assert not whole([*lines, "..."])
    assert not whole(lines[:3])


@pytest.mark.parametrize(("blank", "chained"), [(1, True), (6, True), (7, False), (20, False)])
def test_an_exception_belongs_to_the_one_before_it_within_seven_lines(blank: int, chained: bool) -> None:
    during = "During handling of the above exception, another exception occurred:"
    lines = ["ValueError: a", *[""] * blank, during, "TypeError: b"]
    first = _Raised("ValueError", "a", 0, 0, [], 0, "")
    second = _Raised("TypeError", "b", len(lines) - 1, len(lines) - 1, [], len(lines) - 1, "")
    assert _chained(lines, first, second) is chained


def test_of_resolvers_explanations_forty_sentences_are_enough() -> None:
    one = "Because a0 depends on b0>=1 and a1 depends on b1>=1, it fails."
    assert len(list(parse_resolvers(Paste([one])))) == 2
    assert len(list(parse_resolvers(Paste([line for _ in range(19) for line in (one, "")])))) == 38
    assert len(list(parse_resolvers(Paste([line for _ in range(30) for line in (one, "")])))) == 40


@pytest.mark.parametrize(("strange", "plain", "binary"), [(10, 90, False), (10, 89, True), (0, 9, False)])
def test_a_text_of_which_a_tenth_is_strange_is_still_one(strange: int, plain: int, binary: bool) -> None:
    assert _looks_binary("\x01" * strange + "a" * plain) is binary
    assert _looks_binary("\ufffd" * strange + "a" * plain) is binary
