"""A lock of poetry before 2 tells nothing of groups: the project beside it does."""

from __future__ import annotations

from pathlib import Path

from envdoctor.locks.reading import read_lock

PROJECT = """
[tool.poetry.dependencies]
python = "^3.11"
server = {version = "^1.0", extras = ["standard"]}
colorama = "^0.4"
[tool.poetry.group.dev.dependencies]
black = "*"
"""
LOCK = """
[[package]]
name = "black"
version = "23.1.0"
[package.dependencies]
click = ">=8"
[[package]]
name = "click"
version = "8.0"
[package.dependencies]
colorama = {version = "*", markers = "platform_system == \\"Windows\\""}
[[package]]
name = "colorama"
version = "0.4.6"
[[package]]
name = "server"
version = "1.2"
[package.dependencies]
loop = {version = "*", optional = true, markers = "sys_platform != \\"win32\\" and extra == \\"standard\\""}
wloop = {version = "*", optional = true, markers = "sys_platform == \\"win32\\" and extra == \\"standard\\""}
[package.extras]
standard = ["loop (>=1)", "wloop (>=1) ; sys_platform == \\"win32\\""]
[[package]]
name = "loop"
version = "3.0"
[[package]]
name = "wloop"
version = "3.1"
[metadata]
lock-version = "2.0"
python-versions = "^3.11"
"""


def test_the_project_beside_a_lock_tells_what_is_for_development(tmp_path: Path) -> None:
    (tmp_path / "poetry.lock").write_text(LOCK)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    lock = read_lock(tmp_path / "poetry.lock")
    assert sorted(one.name for one in lock.packages) == ["colorama", "loop", "server"]
    assert lock.notes == ()


def test_without_it_all_are_read_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "poetry.lock").write_text(LOCK)
    lock = read_lock(tmp_path / "poetry.lock")
    assert "black" in {one.name for one in lock.packages}
    assert lock.notes
