"""What lies in an environment is anybody's: lists of files, path files and journals are read in bounds."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envdoctor.errors import Unavailable
from envdoctor.facts import Distribution, Environment, Facts
from envdoctor.fixing.carrying_out import retarget
from envdoctor.fixing.states import Shelf
from envdoctor.fixing.wholeness import recorded, with_missing_files

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="environments are exchanged on Unix")


@pytest.fixture
def info(tmp_path: Path) -> Path:
    """What describes a package, without a RECORD yet."""
    folder = tmp_path / "alphaline-1.0.dist-info"
    folder.mkdir()
    return folder


def problems(info: Path) -> tuple[str, ...]:
    one = Distribution("alphaline", info.name, "1.0", location=str(info.parent))
    found = with_missing_files(Facts(environment=Environment(distributions={"alphaline": one})))
    return found.environment.distributions["alphaline"].problems


@pytest.mark.parametrize("size", ["9" * 5000, "²", "٣", "-1", "1e3", ""])
def test_a_size_that_is_none_is_not_known(info: Path, size: str) -> None:
    (info / "RECORD").write_text(f"alphaline.py,sha256=x,{size}\n", encoding="utf-8")
    assert recorded(info) == [("alphaline.py", None)]


def test_a_name_that_no_file_can_have_is_dropped(info: Path) -> None:
    (info / "RECORD").write_bytes(b"a\0b.py,,3\n\nalphaline.py,,3\n")
    assert recorded(info) == [("alphaline.py", 3)]
    assert problems(info) == ("files are missing or cut short: alphaline.py",)


def test_a_list_that_cannot_be_read_is_no_whole_package(info: Path) -> None:
    (info / "RECORD").symlink_to("/dev/zero")
    assert recorded(info) == []
    assert "its list of files cannot be read" in problems(info)[0]


def test_path_files_that_lead_to_devices_stay(tmp_path: Path) -> None:
    site = tmp_path / "clone" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (site / "endless.pth").symlink_to("/dev/zero")
    (site / "nowhere.pth").symlink_to(tmp_path / "gone")
    (site / "mine.pth").write_text("/old/src\n")
    retarget(tmp_path / "clone", Path("/old"), Path("/new"), scripts=False)
    assert os.readlink(site / "endless.pth") == "/dev/zero"
    assert (site / "mine.pth").read_text() == "/new/src\n"


def test_a_second_fix_leaves_what_the_first_is_at(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    first = Shelf(tmp_path / "env")
    with first.held():
        first.clone.mkdir()
        with pytest.raises(Unavailable, match="another"), Shelf(tmp_path / "env").held():
            pass
        assert first.clone.is_dir()


@pytest.mark.parametrize(
    "journal", ["", "{", "[]", '{"next": 2}', '{"next": 1, "states": 3, "under_way": null}']
)
def test_former_states_outlive_a_journal_that_cannot_be_read(tmp_path: Path, journal: str) -> None:
    (tmp_path / "env").mkdir()
    shelf = Shelf(tmp_path / "env")
    (shelf.folder / "state-1").mkdir(parents=True)
    (shelf.folder / "journal.json").write_text(journal)
    with pytest.raises(Unavailable, match="journal"), shelf.held():
        pass
    assert (shelf.folder / "state-1").is_dir()
    assert (shelf.folder / "journal.json").read_text() == journal
