"""Markers, Requires-Python and wheel tags on a target."""

from __future__ import annotations

from dataclasses import replace

import pytest
from packaging.markers import Marker
from solve_world import release, shipped

from envdoctor.api import pin
from envdoctor.errors import InputError, Unavailable
from envdoctor.harvest.marker_trees import marker_tree, named_extras, python_clauses
from envdoctor.harvest.snapshot_compile import Compiler
from envdoctor.matrix import load_matrix
from envdoctor.matrix.markers import clauses_hold, decide
from envdoctor.matrix.snapshot import parse_snapshot
from envdoctor.target.file_judge import FileJudge
from envdoctor.target.platforms import parse_platform, parse_python
from envdoctor.target.resolve import Declared, Target, check_index_serves, resolve
from envdoctor.target.wheels import Wheels

MATRIX = load_matrix()
LINUX = Target((3, 11), parse_platform("x86_64-manylinux_2_28"))
MARKERS = [
    'python_version >= "3.9"',
    'python_version < "3.9" or python_version >= "3.12"',
    'python_full_version < "3.11.1"',
    'platform_system == "Linux" and platform_machine == "x86_64"',
    'sys_platform != "win32" and (platform_machine == "aarch64" or python_version == "3.11")',
    'platform_machine in "x86_64 AMD64"',
    '"arm" not in platform_machine',
    '"3.10" <= python_version',
    'implementation_name == "cpython" and os_name == "posix"',
    'platform_python_implementation == "PyPy"',
]


@pytest.mark.parametrize("text", MARKERS)
def test_marker_trees_decide_as_packaging_does(text: str) -> None:
    environment = dict(LINUX.marker_environment())
    assert decide(marker_tree(text, ""), environment) is Marker(text).evaluate({**environment, "extra": ""})


def test_questions_about_extras_are_answered_ahead() -> None:
    text = 'extra == "vision" and python_version >= "3.9"'
    assert marker_tree(text, "") is False
    assert marker_tree(text, "vision") == ["$python_version", ">=", "3.9"]
    assert named_extras(text) == {"vision"}


@pytest.mark.parametrize(
    ("text", "python", "holds"),
    [
        (">=3.9", (3, 11), True),
        (">=3.9,<3.11", (3, 11), False),
        ("!=3.9.*,>=3.8", (3, 9), False),
        ("~=3.8", (3, 12), True),
        (">=3.6.*", (3, 11), True),
        ("<4", (3, 15), True),
        (">3.10", (3, 10, 4), True),
    ],
)
def test_requires_python(text: str, python: tuple[int, ...], holds: bool) -> None:
    clauses = python_clauses(text)
    assert clauses is not None
    assert clauses_hold(clauses, python) is holds


def test_a_malformed_requires_python_binds_nobody() -> None:
    assert python_clauses(">=3.x") is None


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("py2-none-any", False),
        ("py312-none-any", False),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("cp311-cp311-manylinux_2_31_x86_64", False),
        ("cp311-cp311-manylinux2014_aarch64", False),
        ("cp311-cp311-musllinux_1_2_x86_64", False),
        ("cp311-cp311t-manylinux2014_x86_64", False),
        ("cp310-cp310-manylinux1_x86_64", False),
        ("cp39-abi3-manylinux1_x86_64", True),
        ("cp312-abi3-manylinux1_x86_64", False),
        ("py39-none-manylinux_2_28_x86_64", True),
        ("cp311-none-win_amd64", False),
        ("cp311-cp311-linux_x86_64", True),
    ],
)
def test_wheel_tags_on_linux(tag: str, fits: bool) -> None:
    assert Wheels(LINUX).install(tag) is fits


@pytest.mark.parametrize(
    ("platform", "tag"),
    [
        ("macos", "cp311-cp311-macosx_11_0_arm64"),
        ("x86_64-apple-darwin", "cp311-cp311-macosx_10_9_universal2"),
        ("windows", "cp311-cp311-win_amd64"),
        ("aarch64-manylinux_2_28", "cp311-cp311-manylinux2014_aarch64"),
        ("x86_64-unknown-linux-musl", "cp311-cp311-musllinux_1_1_x86_64"),
    ],
)
def test_wheel_tags_elsewhere(platform: str, tag: str) -> None:
    assert Wheels(Target((3, 11), parse_platform(platform))).install(tag)
    assert not Wheels(LINUX).install(tag)


@pytest.mark.parametrize("allow_source", [False, True])
@pytest.mark.parametrize(
    ("python", "platform"),
    [((3, 11, 7), "x86_64-manylinux_2_35"), ((3, 9), "aarch64-manylinux_2_17"), ((3, 12), "windows")],
)
def test_what_the_facts_say_of_files_is_what_judging_them_says(
    python: tuple[int, ...], platform: str, allow_source: bool
) -> None:
    snapshot, sets = shipped()[0], shipped()[0].tables["sets"]
    judge = FileJudge(snapshot, Target(python, parse_platform(platform)), allow_source)
    anew = FileJudge(
        replace(snapshot, tables={**snapshot.tables, "verdicts": []}), judge.target, allow_source
    )
    assert [*map(judge.judge, range(len(sets)))] == [*map(anew.judge, range(len(sets)))]


@pytest.mark.parametrize(("python", "bar"), [((3, 11, 3), "python"), ((3, 11, 4), "")])
def test_files_for_some_releases_of_a_python_are_judged_for_the_one_that_is_told(
    python: tuple[int, ...], bar: str
) -> None:
    compiler = Compiler()
    told = release("lib", "1", [], 0)
    told["files"][0]["requires_python"] = ">=3.11.4"
    compiler.add({"name": "lib", "releases": {"1": told}})
    snapshot = parse_snapshot(compiler.bytes("2026-01-01"), "test")
    assert FileJudge(snapshot, Target(python, LINUX.platform), False).judge(0) == bar


@pytest.mark.parametrize("text", ["amiga", "x86_64-manylinux", "riscv64-manylinux_2_39"])
def test_an_unknown_platform_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--platform"):
        parse_platform(text)


def test_an_unknown_python_is_refused() -> None:
    with pytest.raises(InputError, match=r"--python-version 2\.7"):
        parse_python("2.7")


def test_a_card_that_comes_with_one_processor_tells_the_platform() -> None:
    assert resolve(Declared(gpus=["GH200"]), None, MATRIX).platform.arch == "aarch64"
    assert resolve(Declared(gpus=["DGX Spark"]), None, MATRIX).platform.arch == "aarch64"
    declared = Declared(gpus=["GH200"], platform="x86_64-manylinux_2_28")
    assert resolve(declared, None, MATRIX).platform.arch == "x86_64"


def test_a_jetson_is_not_served_by_the_package_index() -> None:
    with pytest.raises(Unavailable, match="JetPack"):
        check_index_serves(resolve(Declared(gpus=["Jetson AGX Orin"]), None, MATRIX), MATRIX)


@pytest.mark.parametrize(
    ("card", "driver", "torch"),
    [("GH200", "550", "+cu12"), ("GB200", "570", "+cu12"), ("GB10", "580", ""), ("GH200", "580", "")],
)
def test_vllm_on_arm_takes_the_torch_of_its_wheels_cuda(card: str, driver: str, torch: str) -> None:
    answer = pin(
        ["vllm"],
        gpus=[card],
        driver=driver,
        python_version="3.12",
        platform="aarch64-manylinux_2_35",
        offline=True,
    )
    pins = {one.name: one.label for one in answer.pins}
    assert answer.status == "solved"
    assert torch in pins["torch"]
    assert ("+" in pins["torch"]) == bool(torch)
    assert "+" not in pins["torchvision"]  # of which the variant's index has no labelled wheels there


@pytest.mark.parametrize(
    ("driver", "label"), [("528.0", "2.7.1+cu118"), ("566.36", "2.7.1+cu126"), (None, "2.7.1+cu126")]
)
def test_on_windows_the_build_for_the_cuda_of_the_release_and_the_driver_is_taken(
    driver: str | None, label: str
) -> None:
    told = {"driver": driver, "python_version": "3.11", "platform": "windows", "offline": True}
    answer = pin(["torch==2.7.1"], gpus=["RTX 4070"], **told)
    assert next(one.label for one in answer.pins if one.name == "torch") == label


@pytest.mark.parametrize(
    ("card", "driver", "told"),
    [
        ("RTX 5090", "550.54", "driver 550.54 does not know RTX 5090 (sm_120): it needs 570 or newer"),
        ("GTX 1080", "590.10", "driver 590.10 no longer drives GTX 1080 (sm_61): 580 is the last branch"),
    ],
)
def test_a_driver_that_does_not_drive_the_card_is_said(card: str, driver: str, told: str) -> None:
    answer = pin(["torch"], gpus=[card], driver=driver, python_version="3.11", offline=True)
    assert told in answer.notes


@pytest.mark.parametrize("name", ["MI300X", "Radeon RX 7900 XTX", "Arc B580", "Gaudi 3", "Apple M3 Max"])
def test_a_card_of_another_maker_is_told_as_one(name: str) -> None:
    with pytest.raises(InputError, match="none of NVIDIA's cards"):
        resolve(Declared(gpus=[name]), None, MATRIX)


def test_a_card_bars_no_release_of_which_a_build_runs_on_it() -> None:
    answer = pin(["torch==2.4.0"], gpus=["RTX 5090"], python_version="3.11", offline=True)
    assert any("cannot run torch 2.4.0" in cause.text for cause in answer.causes)


def test_a_python_told_without_its_last_number_may_be_any_of_them() -> None:
    """torch 1.8.0 asks for Python 3.6.2: of 3.6 some release will do, of 3.6.1 none."""
    for python, status in (("3.6", "solved"), ("3.6.1", "conflict")):
        answer = pin(["torch==1.8.0"], python_version=python, platform="x86_64-manylinux_2_28")
        assert answer.status == status
