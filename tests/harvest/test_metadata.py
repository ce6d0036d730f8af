"""What a release requires: every dialect of METADATA, and the cheapest route that answers."""

from __future__ import annotations

import json

import pytest
from fake_index import FakeFile, FakeIndex, Fault, sdist_bytes, wheel_bytes

from envdoctor.errors import Unavailable
from envdoctor.harvest.index_pages import IndexFile, read_project_page
from envdoctor.harvest.metadata import (
    Requirements,
    Routes,
    WrongMetadata,
    parse_headers,
    parse_metadata,
    parse_release_json,
    parse_requirements,
    parse_requires_txt,
    read_requirements,
    wheel_rank,
)


def requirements_of(index: FakeIndex, routes: Routes | None = None, version: str = "1.0") -> Requirements:
    with index.fetcher() as fetcher:
        page = read_project_page(fetcher, index.url, "demo")
        assert page is not None
        return read_requirements(fetcher, routes or Routes(index.url), "demo", page.releases()[version])


@pytest.mark.parametrize(
    ("written", "modern"),
    [
        ("torch (==2.1.2)", "torch==2.1.2"),
        ("torch (>=2.0,<3) ; extra == 'gpu'", 'torch<3,>=2.0; extra == "gpu"'),
        ("torch>=2.0", "torch>=2.0"),
        ("Torch [opt] >= 2", "Torch[opt]>=2"),
        ("torch; sys_platform == 'linux'", 'torch; sys_platform == "linux"'),
        ("demo @ https://h/demo.whl", "demo@ https://h/demo.whl"),
    ],
)
def test_old_and_new_syntax_become_one(written, modern):
    found = parse_requirements([written], "wheel:x").lines
    assert found is not None
    assert found[0].replace(" @ ", "@ ") == modern


@pytest.mark.parametrize(
    "line", ["torch >=1.0.*", "torch (>=1.0", "torch ==", "==1.0", "torch;; x", "t" * 3000]
)
def test_an_unusable_requirement_is_kept_apart_with_its_reason(line):
    found = parse_requirements(["numpy", line], "wheel:x")
    assert found.lines == ("numpy",)
    ((kept, reason),) = found.unusable
    assert line.startswith(kept)
    assert reason


def test_headers_end_at_the_first_empty_line():
    assert parse_headers("Name: a\nVersion: 1\n\nRequires-Dist: not-a-header") == [
        ("name", "a"),
        ("version", "1"),
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_line_ending_will_do(newline):
    text = newline.join(["Name: demo", "Version: 1.0", "Requires-Dist: torch (>=2)", "", "body"])
    assert parse_metadata(text, "demo", "1.0", "wheel:x").lines == ("torch>=2",)


def test_a_blank_line_inside_a_folded_licence_does_not_end_the_headers():
    text = "Name: demo\nVersion: 1.0\nLicense: MIT\n        \n        Granted\nRequires-Dist: torch\n\n"
    assert parse_metadata(text, "demo", "1.0", "wheel:x").lines == ("torch",)


def test_folded_lines_are_joined():
    text = 'Name: demo\nVersion: 1.0\nRequires-Dist: torch>=2;\n    python_version >= "3.9"\n\n'
    assert parse_metadata(text, "demo", "1.0", "wheel:x").lines == ('torch>=2; python_version >= "3.9"',)


@pytest.mark.parametrize(
    ("name", "version"), [("other", "1.0"), ("demo", "2.0"), ("", ""), ("demo", "not a version")]
)
def test_metadata_of_another_release_is_refused(name, version):
    with pytest.raises(WrongMetadata):
        parse_metadata(f"Name: {name}\nVersion: {version}\n\n", "demo", "1.0", "wheel:x")


def test_a_name_is_compared_in_canonical_form_and_a_local_version_without_its_label():
    assert parse_metadata("Name: De_mo\nVersion: 1.0+cu126\n\n", "de-mo", "1.0", "wheel:x").lines == ()


def test_the_metadata_file_beside_the_wheel_is_read_first(index: FakeIndex):
    index.add_wheel("demo", "1.0", metadata=b"Name: demo\nVersion: 1.0\nRequires-Dist: torch\n\n")
    found = requirements_of(index)
    assert (found.lines, found.source) == (("torch",), "wheel:demo-1.0-py3-none-any.whl")
    assert index.paths()[-1] == "/files/demo-1.0-py3-none-any.whl.metadata"


def test_a_wrong_hash_of_the_metadata_file_breaks_the_reading(index: FakeIndex):
    index.add_wheel("demo", "1.0", metadata=b"Name: demo\nVersion: 1.0\n\n", metadata_hash="0" * 64)
    with pytest.raises(Unavailable, match=r"demo-1\.0-py3-none-any\.whl\.metadata: wrong hash"):
        requirements_of(index)


def test_the_release_json_comes_next(index: FakeIndex):
    index.add_wheel("demo", "1.0", "numpy")
    info = {"name": "demo", "version": "1.0", "requires_dist": ["torch (>=2)"]}
    index.pages["/pypi/demo/1.0/json"] = ("application/json", json.dumps({"info": info}).encode())
    found = requirements_of(index)
    assert (found.lines, found.source) == (("torch>=2",), "release JSON")


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"info": {"requires_dist": null}}', b'{"info": {"requires_dist": [1]}}']
)
def test_a_release_json_that_does_not_say_is_passed_over(body):
    assert parse_release_json(body, "demo", "1.0") is None


def test_the_wheel_itself_is_read_by_its_tail(index: FakeIndex):
    index.add_wheel("demo", "1.0", "torch (==2.1)", members={"demo/big.bin": bytes(3_000_000)})
    found = requirements_of(index)
    assert found.lines == ("torch==2.1",)
    ranges = [headers["Range"] for path, headers in index.requests if path.startswith("/files/")]
    assert ranges == ["bytes=-32768"]


def test_a_wheel_larger_than_its_tail_costs_further_ranges(index: FakeIndex):
    many = {f"demo/{n:05}-{'x' * 60}.py": b"" for n in range(1500)}
    content = wheel_bytes("demo", "1.0", ("torch",), many)
    index.add("demo", FakeFile("demo-1.0-py3-none-any.whl", content))
    assert requirements_of(index).lines == ("torch",)
    served = sum(path.startswith("/files/") for path in index.paths())
    assert 2 <= served <= 3


def test_a_route_that_always_misses_is_not_asked_forever(index: FakeIndex):
    routes = Routes(index.url)
    for minor in range(8):
        index.add_wheel("demo", f"1.{minor}")
    with index.fetcher() as fetcher:
        page = read_project_page(fetcher, index.url, "demo")
        assert page is not None
        for files in page.releases().values():
            read_requirements(fetcher, routes, "demo", files)
    assert sum(path.startswith("/pypi/") for path in index.paths()) == 5


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not a zip", "not a zip archive"),
        (wheel_bytes("demo", "1.0")[:-30], "not a zip archive, or cut short"),
        (wheel_bytes("other", "1.0"), "its metadata is of 'other'"),
        (wheel_bytes("demo", "1.0", members={"x.dist-info/METADATA": b""}), "2 METADATA members"),
    ],
)
def test_a_broken_wheel_is_a_reason_not_a_crash(index: FakeIndex, content, reason):
    index.add("demo", FakeFile("demo-1.0-py3-none-any.whl", content))
    found = requirements_of(index)
    assert found.lines is None
    assert reason in (found.reason or "")


def test_damage_inside_a_wheel_is_found_by_its_checksum(index: FakeIndex):
    content = bytearray(wheel_bytes("demo", "1.0", ("torch",) * 40))
    content[60] ^= 0xFF
    index.add("demo", FakeFile("demo-1.0-py3-none-any.whl", bytes(content)))
    found = requirements_of(index)
    assert found.lines is None
    assert "METADATA" in (found.reason or "")


def test_a_server_that_fails_is_not_the_releases_fault(index: FakeIndex):
    file = index.add_wheel("demo", "1.0")
    index.faults[f"/files/{file.filename}"] = Fault(status=500)
    with pytest.raises(Unavailable, match="answered 500"):
        requirements_of(index)


def test_an_sdist_tells_by_its_pkg_info(index: FakeIndex):
    text = "Metadata-Version: 2.2\nName: demo\nVersion: 1.0\nRequires-Dist: torch>=2\n\n"
    index.add("demo", FakeFile("demo-1.0.tar.gz", sdist_bytes("demo", "1.0", {"PKG-INFO": text})))
    found = requirements_of(index)
    assert (found.lines, found.source) == (("torch>=2",), "sdist:demo-1.0.tar.gz")


def test_an_old_sdist_tells_by_its_requires_txt(index: FakeIndex):
    members = {
        "PKG-INFO": "Name: demo\nVersion: 1.0\n\n",
        "demo.egg-info/requires.txt": "torch>=1\n\n[dev:python_version < '3.9']\npytest\n"
        "[:sys_platform == 'linux']\nx",
    }
    index.add("demo", FakeFile("demo-1.0.tar.gz", sdist_bytes("demo", "1.0", members)))
    assert requirements_of(index).lines == (
        "torch>=1",
        'pytest; python_version < "3.9" and extra == "dev"',
        'x; sys_platform == "linux"',
    )


def test_an_sdist_that_does_not_say_is_unknown_not_empty(index: FakeIndex):
    index.add("demo", FakeFile("demo-1.0.tar.gz", sdist_bytes("demo", "1.0", {"PKG-INFO": "Name: demo\n\n"})))
    found = requirements_of(index)
    assert found.lines is None
    assert "only a build tells" in (found.reason or "")


@pytest.mark.parametrize(
    ("members", "known"),
    [
        ({"demo.egg-info/SOURCES.txt": "setup.py\n"}, True),
        ({"src/demo.egg-info/SOURCES.txt": "setup.py\n"}, True),
        ({"tests/other.egg-info/SOURCES.txt": "setup.py\n"}, False),
        ({"PKG-INFO": "Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n\n"}, True),
        ({"PKG-INFO": "Metadata-Version: 2.4\nName: demo\nDynamic: Requires-Dist\n\n"}, False),
        ({"PKG-INFO": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n\n"}, False),
    ],
)
def test_an_sdist_made_without_requirements_says_so(index: FakeIndex, members: dict[str, str], known: bool):
    members = {"PKG-INFO": "Name: demo\nVersion: 1.0\n\n", **members}
    index.add("demo", FakeFile("demo-1.0.tar.gz", sdist_bytes("demo", "1.0", members)))
    assert (requirements_of(index).lines == ()) is known


def test_a_broken_sdist_is_a_reason(index: FakeIndex):
    index.add("demo", FakeFile("demo-1.0.tar.gz", b"\x1f\x8b nothing"))
    assert "not a readable sdist" in (requirements_of(index).reason or "")


def test_requires_txt_without_sections_is_plain():
    assert parse_requires_txt("# comment\na\n\nb>=1\n") == ["a", "b>=1"]


def test_the_wheel_for_x86_64_linux_is_read_first():
    tags = [
        "win_amd64",
        "macosx_11_0_arm64",
        "manylinux_2_28_aarch64",
        "manylinux_2_28_x86_64",
        "musllinux_1_2_x86_64",
    ]
    files = [IndexFile(f"demo-1.0-cp312-cp312-{tag}.whl", "1.0", "") for tag in tags]
    files.append(IndexFile("demo-1.0-py3-none-any.whl", "1.0", ""))
    order = [file.filename.split("-")[-1] for file in sorted(files, key=wheel_rank)]
    assert order[0] == "manylinux_2_28_x86_64.whl"
    assert order[1:3] == ["musllinux_1_2_x86_64.whl", "any.whl"]


def test_of_one_platform_the_newest_cpython_is_read_first_and_no_other_abi():
    tags = ["cp39-cp39", "cp310-cp310", "cp37-cp37m", "cp313-cp313t", "cp313-cp313", "pp310-pypy310_pp73"]
    files = [IndexFile(f"demo-1.0-{tag}-manylinux1_x86_64.whl", "1.0", "") for tag in tags]
    order = [
        file.filename.split("-")[2] + file.filename.split("-")[3] for file in sorted(files, key=wheel_rank)
    ]
    assert order[:4] == ["cp313cp313", "cp310cp310", "cp39cp39", "cp37cp37m"]


def test_a_wheel_for_python_2_is_never_read(index: FakeIndex):
    index.add_wheel("demo", "1.0", "future", tag="cp27-cp27mu-manylinux1_x86_64")
    index.add_wheel("demo", "1.0", tag="cp35-cp35m-manylinux1_x86_64")
    assert requirements_of(index).lines == ()


def test_a_release_for_python_2_alone_is_unknown(index: FakeIndex):
    index.add_wheel("demo", "1.0", "future", tag="py2-none-any")
    found = requirements_of(index)
    assert (found.lines, found.reason) == (None, "none of its files is for Python 3")


def test_the_json_of_a_release_with_several_wheels_is_not_trusted(index: FakeIndex):
    index.add_wheel("demo", "1.0", "future", tag="cp27-cp27mu-manylinux1_x86_64")
    index.add_wheel("demo", "1.0", "numpy", tag="cp39-cp39-manylinux1_x86_64")
    info = {"name": "demo", "version": "1.0", "requires_dist": ["future"]}
    index.pages["/pypi/demo/1.0/json"] = ("application/json", json.dumps({"info": info}).encode())
    assert requirements_of(index).lines == ("numpy",)


def test_wheels_that_differ_by_python_are_told_apart_by_markers(index: FakeIndex):
    wanted = {"39": "numpy>=1.21", "310": "numpy>=1.21", "311": "numpy>=1.24", "312": "numpy>=1.26"}
    for python, line in wanted.items():
        index.add_wheel("demo", "1.0", line, "six", tag=f"cp{python}-cp{python}-manylinux_2_28_x86_64")
    lines = requirements_of(index).lines
    assert lines == (
        'numpy>=1.21; python_version < "3.11"',
        "six",
        'numpy>=1.24; python_version >= "3.11" and python_version < "3.12"',
        'numpy>=1.26; python_version >= "3.12"',
    )


def test_wheels_that_agree_cost_two_readings(index: FakeIndex):
    for minor in range(9, 14):
        index.add_wheel("demo", "1.0", "six", tag=f"cp3{minor}-cp3{minor}-manylinux_2_28_x86_64")
    assert requirements_of(index).lines == ("six",)
    assert len([path for path in index.paths() if path.startswith("/files/")]) == 2
