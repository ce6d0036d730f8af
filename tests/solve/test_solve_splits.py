"""Stacks that can share no environment get two, with the proof."""

from __future__ import annotations

from pathlib import Path

import pytest
from solve_world import EMPTY, goal, shipped, target, world

from envdoctor.cli import main
from envdoctor.matrix import Matrix
from envdoctor.solve.pinning import pin

CASES = {
    "axolotl": (["vllm==0.32.0", "axolotl==0.21.0", "torch"], ("axolotl 0.21.0", "transformers==5.20.1")),
    "llamafactory": (["vllm==0.32.0", "llamafactory==0.9.5"], ("llamafactory 0.9.5", "<=5.6.0")),
    "ms-swift": (["vllm==0.32.0", "ms-swift==4.2.0"], ("ms-swift 4.2.0", "transformers")),
    "trl": (["vllm==0.32.0", "trl[vllm]==1.16.0"], ("trl 1.16.0", "vllm")),
}


@pytest.mark.parametrize("training", CASES)
def test_vllm_and_a_training_stack_that_clash_get_an_environment_each(training: str) -> None:
    snapshot, matrix = shipped()
    requests, (owner, bound) = CASES[training]
    on = target((3, 12), "x86_64-manylinux_2_35", matrix=matrix)
    answer = pin(goal(snapshot, requests, on=on, matrix=matrix, allow_source=True))
    assert answer.status == "split"
    serving, learning = ({one.name: one.version for one in half.pins} for half in answer.sets)
    assert serving["vllm"] == "0.32.0"
    assert training not in serving
    assert training in learning
    assert any(owner in cause.text and bound in cause.text for cause in answer.causes)
    assert ("torch" in requests) <= ("torch" in serving and "torch" in learning)


ROLES = {"engine": "serving", "trainer": "training", "tuner": "training"}
NEEDS = {"engine": "core==1", "trainer": "core==2", "tuner": "core==1", "other": "core==2", "plain": "core"}


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (["engine", "trainer"], "split"),
        (["engine", "trainer", "plain"], "split"),
        (["trainer", "tuner"], "conflict"),
        (["engine", "other"], "conflict"),
        (["engine", "tuner", "other"], "conflict"),
        (["engine", "trainer", "other"], "conflict"),
        (["engine", "tuner", "plain"], "solved"),
    ],
)
def test_only_stacks_of_different_ends_that_clash_are_parted(asked: list[str], status: str) -> None:
    packages = {name: {"1": [needed]} for name, needed in NEEDS.items()}
    origin = {"source": "https://example.com", "checked_on": "2026-01-01", "basis": "upstream statement"}
    rows = [{"id": f"ROLE-{name}", "name": name, "role": role, **origin} for name, role in ROLES.items()]
    matrix = Matrix({"stack_role": rows}, "test", "2026-01-01", EMPTY.folder)
    answer = pin(goal(world({"core": {"1": [], "2": []}, **packages}), asked, matrix=matrix))
    assert answer.status == status
    assert [{pin.name for pin in half.pins} for half in answer.sets] == (
        [{*asked, "core"} - {"trainer"}, {*asked, "core"} - {"engine"}] if status == "split" else []
    )


def test_a_split_is_written_as_one_file_a_set_and_says_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pins.txt"
    file.write_text("kept==1\n", encoding="utf-8")
    words = ["vllm==0.32.0", "trl[vllm]==1.16.0", "torch"]
    told = ["--python-version", "3.12", "--platform", "x86_64-manylinux_2_35", "--offline", "--allow-source"]
    assert main(["pin", *words, *told, "-o", str(file)]) == 1
    out, err = capsys.readouterr()
    assert file.read_text(encoding="utf-8") == "kept==1\n"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["pins-trl.txt", "pins-vllm.txt", "pins.txt"]
    serving, training = (
        (tmp_path / f"pins-{one}.txt").read_text(encoding="utf-8") for one in ("vllm", "trl")
    )
    assert "\nvllm==0.32.0\n" in serving
    assert "trl==" not in serving
    assert "\ntrl==1.16.0\n" in training
    assert "\ntorch==" in serving
    assert "\ntorch==" in training
    assert "pins-vllm.txt: the environment of vllm==0.32.0, torch" in err
    assert "pins-trl.txt: the environment of " in err
    assert "trl 1.16.0" in out


def test_a_split_as_locks_gives_names_that_installers_take_for_locks(tmp_path: Path) -> None:
    words = ["vllm==0.32.0", "axolotl==0.21.0", "--format", "uv", "--offline", "--allow-source"]
    told = ["--python-version", "3.12", "--platform", "x86_64-manylinux_2_35"]
    assert main(["pin", *words, *told, "-o", str(tmp_path / "pylock.toml")]) == 1
    assert {one.name for one in tmp_path.iterdir()} == {"pylock.vllm.toml", "pylock.axolotl.toml"}
