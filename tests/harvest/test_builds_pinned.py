"""`pin` on releases without a wheel: what their setups import that an isolated build does not have."""

from __future__ import annotations

import pytest
from fake_index import FakeFile, FakeIndex, sdist_bytes

from envdoctor import api
from envdoctor.matrix import load_matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.solve.documents import Header
from envdoctor.solve.manifests import uv_text
from envdoctor.solve.summary import summary_lines


def offer(index: FakeIndex, setup: str, asked: str = "") -> None:
    told = "Metadata-Version: 2.2\nName: unheard-of\nVersion: 1.0\nRequires-Dist: packaging\n\n"
    members = {"PKG-INFO": told, "setup.py": setup}
    if asked:
        members["pyproject.toml"] = f"[build-system]\nrequires = {asked}\n"
    content = sdist_bytes("unheard-of", "1.0", members)
    index.add("unheard-of", FakeFile("unheard-of-1.0.tar.gz", content))


def setuptools(index: FakeIndex) -> None:
    package = load_snapshot(load_matrix().folder).package("setuptools")
    assert package is not None
    for version in [v for place, v in enumerate(package.versions) if package.finals >> place & 1][-30:]:
        lost = int(version.split(".")[0]) >= 82
        files = {"setuptools/__init__.py": b""} | ({} if lost else {"pkg_resources/__init__.py": b""})
        index.add_wheel("setuptools", version, members=files)


@pytest.mark.parametrize(
    ("setup", "asked", "seen"),
    [
        ("import packaging.version\n", "", "packaging (packaging)"),
        ("from packaging import version\n", '["setuptools>=61"]', "packaging (packaging)"),
        ("import pkg_resources\n", "", "pkg_resources (setuptools<82"),
        ("import pkg_resources\n", '["setuptools"]', "pkg_resources (setuptools<82"),
        ("import pkg_resources\n", '["setuptools<70"]', ""),
        ("import packaging\n", '["setuptools", "packaging"]', ""),
        ("import os, sys, setuptools\nfrom distutils.core import setup\n", "", ""),
        ("try:\n    import packaging\nexcept ImportError:\n    packaging = None\n", "", ""),
        ("def run():\n    import packaging\n", "", ""),
    ],
)
def test_what_a_setup_imports_and_its_build_does_not_ask_for_is_told(
    index: FakeIndex, pin, setup: str, asked: str, seen: str
) -> None:
    setuptools(index)
    offer(index, setup, asked)
    told = " ".join(pin("unheard-of", "--allow-source").told["notes"])
    assert ("an isolated build does not have" in told) is bool(seen)
    assert seen in told


def test_the_command_puts_in_first_what_the_build_must_see(index: FakeIndex, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    setuptools(index)
    offer(index, "import packaging, pkg_resources\n", '["setuptools", "cython>=3"]')
    file = str(tmp_path / "c.txt")
    answer = api.pin(
        ["unheard-of"],
        allow_source=True,
        python_version="3.11",
        platform="x86_64-manylinux_2_35",
        index_url=index.url,
    )
    *_, uv, _ = summary_lines(answer, file)
    first, second, third, fourth = uv.removeprefix("install: ").split(" && ")
    assert first.startswith("uv pip install packaging setuptools wheel")
    assert second.startswith("uv pip install 'setuptools<82")
    assert third == f"uv pip install --no-build-isolation unheard-of -c {file}"
    assert fourth == f"uv pip install unheard-of -c {file}"
    told = uv_text(answer, Header("0", "0", "today", "pin"))
    assert '[tool.uv.extra-build-dependencies]\nunheard-of = ["packaging", "setuptools<82' in told


def test_of_torch_uv_builds_with_the_one_that_it_installs() -> None:
    answer = api.pin(
        ["flash-attn==2.8.3"], python_version="3.11", platform="x86_64-manylinux_2_35", offline=True
    )
    told = uv_text(answer, Header("0", "0", "today", "pin"))
    assert 'flash-attn = [{ requirement = "torch", match-runtime = true }]' in told


def test_an_older_release_with_a_wheel_that_fits_is_read_and_taken_before_one_to_compile(
    index: FakeIndex, pin
) -> None:
    tags = {f"1.{minor}": "cp311-cp311" if minor < 2 else "cp312-cp312" for minor in range(12)}
    for version, tag in tags.items():
        index.add_wheel("unheard-of", version, tag=f"{tag}-manylinux_2_17_x86_64")
        told = {"PKG-INFO": f"Metadata-Version: 2.2\nName: unheard-of\nVersion: {version}\n\n"}
        content = sdist_bytes("unheard-of", version, told)
        index.add("unheard-of", FakeFile(f"unheard-of-{version}.tar.gz", content))
    assert pin("unheard-of", "--allow-source").pins["unheard-of"] == "1.1"
