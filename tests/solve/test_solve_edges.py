"""What the solver reads and writes, word by word: names of files, wheels and projects, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from solve_world import target

from envdoctor.facts import CudaVersion
from envdoctor.solve.causes import _first_sentence, _span
from envdoctor.solve.projects import _pyproject, _reader_of
from envdoctor.solve.requests import _is_prerelease, _release_of, _split_marker
from envdoctor.solve.summary import _listed
from envdoctor.solve.variants import Build
from envdoctor.target.platforms import parse_platform
from envdoctor.target.wheels import Wheels, _python_fits, platform_fits

VERSIONS = ("1.0", "1.1", "2.0", "2.1")


@pytest.mark.parametrize(
    ("python", "abi", "minor", "fits"),
    [
        *[("py3", "none", 11, True), ("py311", "none", 11, True), ("py312", "none", 11, False)],
        *[("py3", "abi3", 11, False), ("py2", "none", 11, False), ("cp27", "cp27m", 11, False)],
        *[("cp311", "cp311", 11, True), ("cp311", "cp311m", 11, True), ("cp311", "none", 11, True)],
        *[("cp310", "cp310", 11, False), ("cp312", "cp312", 11, False), ("cp311", "cp310", 11, False)],
        *[("cp38", "abi3", 11, True), ("cp311", "abi3", 11, True), ("cp312", "abi3", 11, False)],
        *[("cp313", "cp313t", 13, False), ("pp310", "none", 10, False)],
    ],
)
def test_which_pythons_a_wheel_is_for(python: str, abi: str, minor: int, fits: bool) -> None:
    assert _python_fits(python, abi, minor) is fits


@pytest.mark.parametrize(
    ("platform", "tag", "fits"),
    [
        *[("x86_64-manylinux_2_28", tag, True) for tag in ("any", "linux_x86_64", "manylinux1_x86_64")],
        *[("x86_64-manylinux_2_28", tag, True) for tag in ("manylinux_2_28_x86_64", "manylinux2014_x86_64")],
        *[("x86_64-manylinux_2_28", tag, False) for tag in ("linux_aarch64", "manylinux2014_aarch64")],
        *[("x86_64-manylinux_2_28", tag, False) for tag in ("manylinux_2_29_x86_64", "musllinux_1_1_x86_64")],
        *[("x86_64-manylinux_2_28", tag, False) for tag in ("win_amd64", "macosx_11_0_arm64", "nothing")],
        *[("aarch64-apple-darwin", tag, True) for tag in ("macosx_11_0_arm64", "macosx_10_9_universal2")],
        *[("aarch64-apple-darwin", tag, False) for tag in ("macosx_10_9_x86_64", "linux_arm64")],
        *[("x86_64-apple-darwin", tag, True) for tag in ("macosx_10_9_x86_64", "macosx_10_9_intel")],
        *[("x86_64-apple-darwin", tag, False) for tag in ("macosx_10_9_arm64", "macosx_99_0_x86_64")],
        *[("x86_64-pc-windows-msvc", "win_amd64", True), ("x86_64-pc-windows-msvc", "win_arm64", False)],
        ("x86_64-unknown-linux-musl", "musllinux_1_1_x86_64", True),
        ("x86_64-unknown-linux-musl", "manylinux2014_x86_64", False),
    ],
)
def test_which_platforms_a_wheel_is_for(platform: str, tag: str, fits: bool) -> None:
    assert platform_fits(tag, parse_platform(platform)) is fits


@pytest.mark.parametrize(
    ("where", "release"),
    [
        ("https://example.org/torch-2.6.0%2Bcu124-cp311-cp311-linux_x86_64.whl", ("torch", "2.6.0+cu124")),
        (
            "https://example.org/flash_attn-2.7.4-cp311-cp311-linux_x86_64.whl#sha256=0",
            ("flash-attn", "2.7.4"),
        ),
        ("https://example.org/a-1.0-py3-none-any.whl?token=x", ("a", "1.0")),
        ("./a-1.0-1-py3-none-any.whl", ("a", "1.0")),
        ("./a-1.0-py3.whl", ("", "")),
        ("https://example.org/a-1.0-py3-none-any.tar.gz", ("", "")),
        ("git+https://example.org/a.git@v1.2.0#egg=A_B", ("a-b", "1.2.0")),
        ("git+https://example.org/a.git#subdirectory=x&egg=a", ("a", "")),
        ("git+https://example.org/a.git", ("", "")),
    ],
)
def test_what_a_url_tells_of_a_release(where: str, release: tuple[str, str]) -> None:
    assert _release_of(where) == release


@pytest.mark.parametrize(
    ("bound", "early"),
    [("1.0", False), ("1.0rc1", True), ("1.0.*", False), ("2.0a1.*", True), ("any", False)],
)
def test_a_bound_that_names_a_prerelease(bound: str, early: bool) -> None:
    assert _is_prerelease(bound) is early


def test_a_url_s_own_semicolons_are_no_marker() -> None:
    assert _split_marker("a @ https://e.org/a;b ; os_name == 'x'") == (
        "a @ https://e.org/a;b",
        "os_name == 'x'",
    )
    assert _split_marker("a>=1") == ("a>=1", "")


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (0, ""),
        (0b1, "1.0"),
        (0b1000, "2.1"),
        (0b11, "1.0 to 1.1"),
        (0b1010, "1.1 to 2.1"),
        (0b1111, "1.0 to 2.1"),
    ],
)
def test_a_span_of_versions_is_told_by_its_ends(mask: int, told: str) -> None:
    assert _span(VERSIONS, mask) == told


def test_the_first_sentence_of_a_cause() -> None:
    assert _first_sentence("It asks for {x} torch 2.6 (cu124). The rest.") == "It asks for torch 2.6 (cu124)"
    assert _first_sentence("It needs v1.2. or so.") == "It needs v1.2. or so"


@pytest.mark.parametrize(
    ("variant", "cuda", "label", "answers"),
    [
        *[("cu126", "12.6", "cu126", True), ("cu126", "12.6", "cu124", False), ("cpu", None, "cpu", True)],
        *[(None, "12.6", "cu126", True), (None, "12.6", "cu128", False), (None, None, "cpu", False)],
        ("cu126_full", "12.6", "cu126", False),
    ],
)
def test_a_build_is_meant_by_its_variant_or_the_default_s_cuda(
    variant: str | None, cuda: str | None, label: str, answers: bool
) -> None:
    build = Build("2.6.0", variant, CudaVersion.parse(cuda) if cuda else None, None, "row")
    assert build.answers(label) is answers


@pytest.mark.parametrize(
    ("name", "read"),
    [
        *[("environment.yml", True), ("environment-gpu.yaml", True), ("environment.txt", False)],
        *[("pyproject.toml", True), ("Pipfile", True), ("Dockerfile.gpu", True), ("install.sh", True)],
        *[("setup.bash", True), ("a.ipynb", True), ("notes.yml", False), ("a.txt", False)],
    ],
)
def test_files_that_tell_what_a_project_needs(name: str, read: bool) -> None:
    assert (_reader_of(Path(name)) is not None) is read


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            '[project]\ndependencies = ["torch>=2"]\n[project.optional-dependencies]\ngpu = ["vllm"]',
            ["torch>=2", "vllm"],
        ),
        ('[dependency-groups]\ndev = ["torch"]', ["torch"]),
        ('[project]\nname = "x"\n[dependency-groups]\ndev = ["torch"]', []),
        ('[tool.poetry]\nname = "x"\n[dependency-groups]\ndev = ["torch"]', []),
        ('[tool.poetry.dependencies]\npython = "^3.11"\nrich = {version = ">=13", optional = true}', []),
    ],
)
def test_what_a_pyproject_asks_for(text: str, lines: list[str]) -> None:
    assert list(_pyproject(text, ("gpu",))) == lines


def test_a_list_is_said_with_how_many_more_there_are() -> None:
    names = [f"p{n}" for n in range(40)]
    assert _listed("changed", []) == ""
    assert _listed("changed", names[:1]) == "changed: p0"
    told = _listed("changed", names)
    shown = told.count(",") + 1
    assert told.startswith("changed: p0, p1")
    assert told.endswith(f" and {40 - shown} more")
    assert " more" not in _listed("changed", names[:shown])


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("cp311-cp311-macosx_11_0_arm64.manylinux2014_x86_64", True),
        ("cp311-cp311-macosx_11_0_arm64.win_amd64", False),
        ("cp310.cp311-none-any", True),
        ("cp310.cp312-none-any", False),
        ("py2.py3-none-any", True),
    ],
)
def test_one_of_a_wheel_s_tags_is_enough(tag: str, fits: bool) -> None:
    assert Wheels(target()).install(tag) is fits
