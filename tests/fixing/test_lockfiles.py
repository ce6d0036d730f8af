"""`envdoctor fix --lockfile`: the plan as a diff, then in the file, comments and order kept."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envdoctor.cli import main
from envdoctor.findings import Move
from envdoctor.fixing.lockfiles import HASHED, edited

MOVES = (Move("transformers", "4.40.1", "4.38.2"), Move("flash-attn", "2.5.0", "2.6.3"))
CASES = {
    "requirements.txt": (
        "# mine\ntransformers[torch] >=4.40, <5 ; os_name > 'n'  # as transformers==4.40\nFlash_Attn\n",
        "# mine\ntransformers[torch]==4.38.2 ; os_name > 'n'  # as transformers==4.40\nFlash_Attn==2.6.3\n",
    ),
    "pyproject.toml": (
        'dependencies = [\n  "transformers==4.40.1",  # keep\n  "flash-attn>=2; extra == \'gpu\'",\n]\n',
        'dependencies = [\n  "transformers==4.38.2",  # keep\n  "flash-attn==2.6.3; extra == \'gpu\'",\n]\n',
    ),
    "poetry/pyproject.toml": (
        '[tool.poetry.dependencies]\ntransformers = "^4.40"\nflash-attn = "2.5.0"\n',
        '[tool.poetry.dependencies]\ntransformers = "4.38.2"\nflash-attn = "2.6.3"\n',
    ),
    "environment.yml": (
        "dependencies:\n  - transformers=4.40.1=py_0\n  - pip:\n      - flash-attn==2.5.0  # pip's\n",
        "dependencies:\n  - transformers=4.38.2\n  - pip:\n      - flash-attn==2.6.3  # pip's\n",
    ),
    "Dockerfile": (
        "FROM x\nRUN pip install 'transformers==4.40.1' flash-attn==2.5.0 \\\n    transformers-stream==1\n",
        "FROM x\nRUN pip install 'transformers==4.38.2' flash-attn==2.6.3 \\\n    transformers-stream==1\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_versions_alone_are_replaced(name: str) -> None:
    before, after = CASES[name]
    assert edited(before, Path(name).name, MOVES) == (after, ())


def test_what_a_file_has_no_place_for_is_said_or_added() -> None:
    new = (Move("ninja", None, "1.13.2"), Move("nvidia-nccl-cu11", "2.14", None))
    text, lost = edited("torch==2.6.0", "requirements.txt", new)
    assert text == "torch==2.6.0\nninja==1.13.2\n"
    assert lost == ("nvidia-nccl-cu11 is to be taken out",)
    assert edited("FROM x\n", "Dockerfile", new[:1]) == (
        "FROM x\n",
        ("ninja==1.13.2 is named nowhere in Dockerfile",),
    )


def test_the_diff_comes_first_and_the_file_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "requirements.txt"
    file.write_bytes(b"# mine\r\ntransformers==4.40.1  # why\r\ntrl==0.7.11\r\n")
    before = file.read_bytes()
    assert main(["fix", "--lockfile", str(file)]) == 1
    assert "+trl==" in capsys.readouterr().out
    assert file.read_bytes() == before
    assert main(["fix", "--lockfile", str(file), "--apply"]) == 0
    capsys.readouterr()
    assert file.read_bytes().startswith(b"# mine\r\ntransformers==4.40.1  # why\r\ntrl==0.")
    assert main(["fix", "--lockfile", str(file)]) == 0
    assert main(["fix", "--lockfile", str(tmp_path / "none.txt")]) == 2


def test_what_is_to_be_kept_is_kept_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("transformers==4.40.1\ntrl==0.7.11\n")
    main(["fix", "--lockfile", str(file), "--keep", "trl"])
    told = capsys.readouterr().out
    assert "-transformers==4.40.1" in told
    assert "-trl==0.7.11" not in told
    assert main(["fix", "--lockfile", str(file), "--python", sys.executable]) == 2


def test_hashes_and_locks_are_left_to_their_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    move = (Move("trl", "0.7.11", "0.8.1"),)
    assert edited("trl==0.7.11 --hash=sha256:ab\n", "requirements.txt", move)[1] == (HASHED,)
    lock = tmp_path / "pylock.toml"
    lock.write_text('[[packages]]\nname = "torch"\nversion = "2.6.0"\n')
    assert main(["fix", "--lockfile", str(lock), "--apply"]) == 2
    assert "written by its own tool" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="a device of Unix")
def test_a_file_that_never_ends_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fix", "--lockfile", "/dev/zero"]) == 2
    assert "--lockfile /dev/zero: a device" in capsys.readouterr().err
