"""`envdoctor fix`: mended on a clone and exchanged; whatever fails, the environment is what it was."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from small_world import fingerprint, install, make_environment, make_wheel, offer_wheels, says

from envdoctor.cli import main
from envdoctor.diagnosis import diagnose_facts
from envdoctor.errors import Unavailable
from envdoctor.facts import Facts, Verdict
from envdoctor.findings import Diagnosis
from envdoctor.fixing import exchange as exchanging
from envdoctor.fixing.carrying_out import Call, Carrier
from envdoctor.fixing.copying import copy_tree
from envdoctor.fixing.fixing import apply_fix
from envdoctor.fixing.states import Shelf
from envdoctor.fixing.verifying import check_smoked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="environments are exchanged on Unix")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only wheels that an installer finds."""
    return offer_wheels(tmp_path, monkeypatch)


@pytest.fixture
def broken(tmp_path: Path, wheels: Path) -> Path:
    """An environment in which a package is older than another requires."""
    return make_environment(tmp_path / "env", "alphaline==1.0", "betaline==1.0")


def run(python: Path, *options: str) -> int:
    return main(["fix", "--python", str(python), "--quiet", *options])


def test_nothing_changes_before_it_is_asked_for(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = fingerprint(broken.parents[1])
    assert run(broken) == 1
    assert "betaline" in capsys.readouterr().out
    assert fingerprint(broken.parents[1]) == before


def test_the_environment_is_mended_in_its_own_place(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(broken, "--apply", "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["status"], told["remaining"]) == ("envdoctor.fix/1", "mended", [])
    assert says(broken, "import alphaline, betaline; print(betaline.VERSION)") == "2.1"
    script = (broken.parent / "betaline-say").read_text()
    assert script.startswith(f"#!{broken}")
    assert run(broken) == 0


def test_undo_is_exact_and_goes_forward_again(broken: Path) -> None:
    before = fingerprint(broken.parents[1])
    assert run(broken, "--apply") == 0
    after = fingerprint(broken.parents[1])
    assert run(broken, "--undo") == 0
    assert fingerprint(broken.parents[1]) == before
    assert run(broken, "--undo") == 0
    assert fingerprint(broken.parents[1]) == after
    assert run(broken, "--undo", "7") == 3


def test_a_broken_interpreter_is_gone_back_from(broken: Path) -> None:
    before = fingerprint(broken.parents[1])
    assert run(broken, "--apply") == 0
    broken.unlink()
    assert run(broken, "--undo") == 0
    assert fingerprint(broken.parents[1]) == before


def test_a_failing_installer_leaves_everything_as_it_was(
    broken: Path, wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (wheels / "betaline-2.1-py3-none-any.whl").unlink()
    folder = broken.parents[1]
    before, beside = fingerprint(folder), sorted(os.listdir(folder.parent))
    assert run(broken, "--apply") == 3
    assert "nothing was changed" in capsys.readouterr().err
    assert fingerprint(folder) == before
    assert sorted(os.listdir(folder.parent)) == beside


def test_what_cannot_be_imported_is_not_exchanged(broken: Path, wheels: Path) -> None:
    (wheels / "betaline-2.1-py3-none-any.whl").unlink()
    make_wheel(wheels, "betaline", "2.2", ["gonemodule"])
    make_wheel(wheels, "gonemodule", "1.0", ["stillanother"])
    make_wheel(wheels, "stillanother", "1.0")
    with_error = wheels / "stillanother-1.0-py3-none-any.whl"
    with_error.unlink()
    before = fingerprint(broken.parents[1])
    assert run(broken, "--apply") == 3
    assert fingerprint(broken.parents[1]) == before


@pytest.mark.parametrize("steps", [2, 3])
def test_a_kill_at_any_step_leaves_the_original(broken: Path, steps: int) -> None:
    folder = broken.parents[1]
    before = fingerprint(folder)
    child = os.fork()
    if child == 0:
        left = iter(range(steps))
        apply_fix(str(broken), step=lambda _: next(left, None) is None and os._exit(9))
        os._exit(9)
    os.waitpid(child, 0)
    if fingerprint(folder) != before:  # the kill came after the exchange
        assert run(broken, "--undo") == 0
    assert fingerprint(folder) == before
    assert run(broken, "--apply") == 0
    assert says(broken, "import betaline; print(betaline.VERSION)") == "2.1"


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_renames_that_a_kill_cuts_short_are_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    """Where the system has no call that exchanges, three renames do it, and the journal knows of them."""
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "old").touch()
    shelf = Shelf(tmp_path / "env")
    real, done = os.rename, []

    def cut(one: Path, other: Path) -> None:
        if Path(one).name != "clone" and len(done) == renames:
            raise KeyboardInterrupt
        done.append(one) if Path(one).name != "clone" else None
        real(one, other)

    monkeypatch.setattr(exchanging, "_swap", lambda *_: False)
    monkeypatch.setattr("envdoctor.fixing.exchange.os.rename", cut)
    monkeypatch.setattr(Shelf, "_leave", lambda self: None)
    with pytest.raises(KeyboardInterrupt):
        _take(shelf)
    monkeypatch.undo()
    with shelf.held():
        if renames == 2:  # the new one stands in its place already
            shelf.go_back(None)
        assert os.listdir(tmp_path / "env") == ["old"]


def _take(shelf: Shelf) -> None:
    with shelf.held():
        shelf.clone.mkdir()
        (shelf.clone / "new").touch()
        shelf.take(("a",))


def test_a_damaged_package_is_made_whole(broken: Path, wheels: Path) -> None:
    install(broken, "betaline==2.1")
    site = next(broken.parents[1].glob("lib/python3*/site-packages"))
    (site / "alphaline" / "__init__.py").unlink()
    shutil.copytree(site / "betaline-2.1.dist-info", site / "betaline-1.0.dist-info")
    (site / "~etaline").mkdir()
    assert run(broken, "--apply") == 0
    assert says(broken, "import alphaline; print(alphaline.VERSION)") == "1.0"
    assert len(list(site.glob("betaline-*.dist-info"))) == 1
    assert not list(site.glob("~*"))


def test_an_editable_install_still_leads_to_its_source(broken: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "homemade.py").write_text("HERE = __file__\n")
    site = next(broken.parents[1].glob("lib/python3*/site-packages"))
    (site / "homemade.pth").write_text(f"{source}\n{broken.parents[1]}/src\n")
    assert run(broken, "--apply") == 0
    assert says(broken, "import homemade; print(homemade.HERE)") == str(source / "homemade.py")
    assert (site / "homemade.pth").read_text() == f"{source}\n{broken.parents[1]}/src\n"


def test_shared_and_read_only_environments_are_refused(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = broken.parents[1]
    folder.chmod(0o777)
    before = fingerprint(folder)
    assert run(broken, "--apply") == 3
    assert "shared" in capsys.readouterr().err
    assert fingerprint(folder) == before


def test_an_interpreter_of_the_system_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from envdoctor.facts import Environment, Observed
    from envdoctor.fixing.refusals import check_changeable

    (tmp_path / "lib" / "python3.12").mkdir(parents=True)
    (tmp_path / "lib" / "python3.12" / "EXTERNALLY-MANAGED").touch()
    told = (Observed(one, "t") for one in (str(tmp_path), str(tmp_path / "bin/python"), "system"))
    prefix, executable, kind = told
    facts = Facts(environment=Environment(prefix=prefix, executable=executable, kind=kind))
    with pytest.raises(Unavailable, match="PEP 668"):
        check_changeable(facts)


def test_a_copy_shares_nothing_that_is_edited(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "bin").mkdir(parents=True)
    (source / "big.so").write_bytes(b"x" * 200_000)
    (source / "bin" / "tool").write_bytes(b"y" * 200_000)
    (source / "module.py").write_text("a = 1\n" * 20_000)
    os.symlink("module.py", source / "link")
    copy_tree(source, tmp_path / "copy")
    assert fingerprint(tmp_path / "copy") == fingerprint(source)
    files = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
    shared = {str(path) for path in files if (source / path).samefile(tmp_path / "copy" / path)}
    assert shared <= {"big.so"}


def test_a_kernel_that_failed_before_is_no_fault_of_the_change() -> None:
    def smoked(*failed: str) -> Diagnosis:
        verdicts = tuple(Verdict(one, "failed", "smoke") for one in failed)
        return diagnose_facts(Facts(verdicts=verdicts), complete=False)

    check_smoked(smoked(), lambda: pytest.fail("nothing failed: the original is not asked"))
    check_smoked(smoked("matmul.fp8"), lambda: smoked("matmul.fp8"))
    with pytest.raises(Unavailable, match=r"conv\.bf16"):
        check_smoked(smoked("conv.bf16"), lambda: smoked("matmul.fp8"))


def test_a_package_can_be_kept(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = fingerprint(broken.parents[1])
    assert run(broken, "--keep", "betaline", "--apply") in (1, 3)
    assert fingerprint(broken.parents[1]) == before
    assert run(broken, "--keep", "gammaline") == 2


def test_a_paste_has_a_plan_and_is_not_here_to_be_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paste = tmp_path / "issue.md"
    paste.write_text("trl==0.7.11\ntransformers==4.40.1\n")
    assert main(["fix", "--from", str(paste), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], len(told["plan"]["changes"])) == ("shown", 1)
    assert main(["fix", "--from", str(paste), "--apply"]) == 2
    assert main(["fix", "--gpu", "T4"]) == 2


def test_what_path_files_lead_to_is_not_touched(broken: Path, tmp_path: Path, wheels: Path) -> None:
    """A base environment's packages are seen through a path file; the copy in front of them is mended."""
    base = make_environment(tmp_path / "base", "alphaline==1.0", "betaline==2.1")
    base_site = next(base.parents[1].glob("lib/python3*/site-packages"))
    site = next(broken.parents[1].glob("lib/python3*/site-packages"))
    (site / "base.pth").write_text(f"{base_site}\n")
    (site / "alphaline" / "__init__.py").unlink()
    before = fingerprint(base.parents[1])
    assert run(broken, "--apply") == 0
    assert fingerprint(base.parents[1]) == before
    assert says(broken, "import alphaline; print(alphaline.__file__)").startswith(str(site))


def test_folders_that_are_links_to_elsewhere_are_refused(
    broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = next(broken.parents[1].glob("lib/python3*/site-packages"))
    (site / "betaline").rename(tmp_path / "betaline")
    (site / "betaline").symlink_to(tmp_path / "betaline")
    before = fingerprint(tmp_path / "betaline")
    assert run(broken, "--apply") == 3
    assert "a link to elsewhere" in capsys.readouterr().err
    site.rename(tmp_path / "packages")
    site.symlink_to(tmp_path / "packages")
    assert run(broken, "--apply") == 3
    assert "a link to elsewhere" in capsys.readouterr().err
    assert fingerprint(tmp_path / "betaline") == before


def test_uv_finds_its_index_where_no_pip_has_one(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(**_: object) -> None:
        raise Unavailable("no package index is known")

    monkeypatch.delenv("UV_NO_INDEX")
    monkeypatch.setenv("UV_OFFLINE", "")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setattr("envdoctor.fixing.carrying_out.read_index_settings", nowhere)
    carrier = Carrier(str(broken), broken.parents[1], has_pip=False)
    assert "--default-index" not in carrier._argv(Call("install", ("betaline==2.1",)))


def test_a_base_that_was_stripped_is_not_this_environments_damage(broken: Path, tmp_path: Path) -> None:
    base = make_environment(tmp_path / "base", "alphaline==1.0", "betaline==2.1")
    base_site = next(base.parents[1].glob("lib/python3*/site-packages"))
    over = make_environment(tmp_path / "over")
    (next(over.parents[1].glob("lib/python3*/site-packages")) / "base.pth").write_text(f"{base_site}\n")
    (base_site / "alphaline" / "__init__.py").unlink()
    assert run(base) == 1
    assert run(over) == 0
