"""Nothing of the examined environment is imported or run, whatever hook it lays and however it is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from traps import Traps, lay_traps, shadow

DOOR = "import sys\nfrom envdoctor.door import main\nsys.exit(main())\n"
COMMANDS = {
    "diagnose": ("diagnose",),
    "markdown": ("diagnose", "--format", "markdown", "--share"),
    "probe": ("probe",),
    "pin": ("pin", "torch", "--offline", "--gpu", "sm_90", "--driver", "580"),
    "memory": ("memory", "--model", "qwen2.5-7b", "--batch", "1"),
    "profile": ("profile", "--model", "qwen2.5-7b", "--gpu", "RTX 4090"),
    "rules": ("rules",),
    "matrix": ("matrix", "status"),
    "bundle": ("bundle", "--preview"),
}


@pytest.fixture
def traps(tmp_path: Path) -> Traps:
    return lay_traps(tmp_path)


@pytest.fixture(scope="module")
def all_shadowed(tmp_path_factory: pytest.TempPathFactory) -> Traps:
    """Traps under the name of every module, in the environment and in a folder `elsewhere`."""
    folder = tmp_path_factory.mktemp("traps")
    laid = lay_traps(folder)
    shadow(laid, laid.site)
    shadow(laid, folder / "elsewhere")
    return laid


@pytest.fixture
def shadowed(all_shadowed: Traps) -> Traps:
    all_shadowed.reset()
    return all_shadowed


@pytest.fixture
def script(tmp_path: Path) -> list[str]:
    """The console script, as installers write it."""
    path = tmp_path / "own/envdoctor"
    path.parent.mkdir()
    path.write_text(DOOR)
    return [sys.executable, str(path)]


def run(command: list[str], cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        command,
        env={**clean, "NO_COLOR": "1", **environ},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def active(traps: Traps) -> dict[str, str]:
    """The variables of a shell in which that environment is active."""
    return {
        "VIRTUAL_ENV": str(traps.prefix),
        "CONDA_PREFIX": str(traps.prefix),
        "PATH": f"{traps.prefix}/bin:{os.environ['PATH']}",
        "PYTHONSTARTUP": str(traps.site / "startup.py"),
        "PYTHONBREAKPOINT": "trap_start.main",
    }


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_active_environment_is_read_and_not_run(tmp_path, shadowed, script, command):
    done = run([*script, *command], tmp_path, **active(shadowed))
    assert done.returncode in (0, 1), done.stderr
    assert shadowed.sprung() == []


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_pythonpath_that_leads_there_changes_nothing_in_our_process(tmp_path, shadowed, script, command):
    elsewhere = shadowed.prefix.parent / "elsewhere"
    environ = {**active(shadowed), "PYTHONPATH": f"{elsewhere}:relative:{elsewhere}/"}
    run([sys.executable, "-c", "pass"], tmp_path, **environ)
    sprung_at_any_start = shadowed.sprung()
    done = run([*script, *command], tmp_path, **environ)
    assert done.returncode in (0, 1), done.stderr
    assert shadowed.sprung() == sprung_at_any_start


@pytest.mark.parametrize("named", ["prefix", "bin/python", "link", "link to the folder"])
def test_however_the_environment_is_named(tmp_path, traps, script, named):
    places = {"prefix": traps.prefix, "bin/python": traps.prefix / "bin/python"}
    if named.startswith("link"):
        places[named] = tmp_path / "link"
        target = traps.prefix / "bin/python" if named == "link" else traps.prefix
        places[named].symlink_to(target)
    done = run([*script, "probe", "--python", str(places[named])], tmp_path, **active(traps))
    assert traps.sprung() == []
    if named == "link":
        assert done.returncode == 3
        assert "is a script, which is not run" in done.stderr
    else:
        assert done.returncode == 0
        assert json.loads(done.stdout)["environment"]["distributions"]["torch"]["version"] == "2.9.0"


def test_the_folder_we_are_started_in_has_no_say(tmp_path, traps):
    shadow(traps, traps.site)
    # `python -m` itself looks for these there, before it reaches us.
    early = "import runpy, importlib.util, pkgutil, sys; print(*{n.partition('.')[0] for n in sys.modules})"
    known = subprocess.run([sys.executable, "-I", "-c", early], capture_output=True, text=True, check=True)
    for name in known.stdout.split():
        (traps.site / name / "__init__.py").unlink(missing_ok=True)
        if (traps.site / name).is_dir():
            (traps.site / name).rmdir()
    done = run([sys.executable, "-m", "envdoctor", "diagnose"], traps.site, **active(traps))
    assert done.returncode in (0, 1), done.stderr
    assert traps.sprung() == []


def test_isolated_not_even_what_python_runs_before_us(shadowed):
    environ = {**active(shadowed), "PYTHONPATH": str(shadowed.site)}
    done = run([sys.executable, "-I", "-m", "envdoctor", "diagnose"], shadowed.site, **environ)
    assert done.returncode in (0, 1), done.stderr
    assert shadowed.sprung() == []


def test_a_program_that_must_be_asked_is_asked_without_its_site(tmp_path, traps, script):
    """A real interpreter in an odd place, whose own packages folder is full of traps."""
    short = f"{sys.version_info[0]}.{sys.version_info[1]}"
    odd = tmp_path / "odd"
    library = odd / f"lib/python{short}"
    library.mkdir(parents=True)
    for entry in Path(os.__file__).parent.iterdir():
        if entry.name != "site-packages":
            (library / entry.name).symlink_to(entry)
    (library / "site-packages").symlink_to(traps.site)
    (odd / "python").write_bytes(Path(sys.executable).resolve().read_bytes())
    (odd / "python").chmod(0o755)
    run([str(odd / "python"), "-c", "pass"], tmp_path, PYTHONHOME=str(odd))
    if traps.sprung() == [] or not Path(sys.base_prefix, f"lib/python{short}/os.py").exists():
        pytest.skip("this Python cannot be moved")
    traps.reset()
    told = run([*script, "probe", "--python", str(odd / "python")], tmp_path, **active(traps))
    assert traps.sprung() == []
    environment = json.loads(told.stdout)["environment"]
    assert environment["python"]["source"] == "the interpreter itself"
    assert environment["python"]["value"] == sys.version.split()[0]


def test_what_pythonpath_names_of_our_own_stays(tmp_path, script):
    """PYTHONPATH may be how envdoctor, or its interpreter, was set up."""
    import envdoctor

    own = Path(envdoctor.__file__).parents[1]
    packages = Path(next(path for path in sys.path if path.endswith("site-packages")))
    for path in (own, packages, Path(os.__file__).parent, f"{packages}:{own}"):
        done = run([*script, "rules"], tmp_path, PYTHONPATH=str(path))
        assert (done.returncode, done.stderr) == (0, "")
