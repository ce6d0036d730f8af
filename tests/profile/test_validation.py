"""A trial's figures go into the profile; running out of memory steps down, and is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cards import written

from envdoctor.api import choose_profile
from envdoctor.errors import Unavailable
from envdoctor.matrix import load_matrix
from envdoctor.profile.validate import run_validation, trial_request

TOLD = {
    "rank": 0,
    "total_bytes": 24 << 30,
    "allocated_bytes": 19 << 30,
    "reserved_bytes": 20 << 30,
    "context_bytes": 500 << 20,
    "versions": {"torch": "2.13.0"},
    "error": None,
}


def interpreter(folder: Path, *answers: dict[str, object]) -> str:
    """Return a stand-in for Python that answers each trial in turn."""
    for number, answer in enumerate(answers):
        (folder / f"answer{number}").write_text("noise\nTRIAL " + json.dumps(answer) + "\n")
    script = folder / "python"
    script.write_text(
        f"#!/bin/sh\ncd {folder}\nn=$(cat count 2>/dev/null || echo 0)\necho $((n+1)) > count\ncat answer$n\n"
    )
    script.chmod(0o755)
    return str(script)


def test_measured_stands_beside_predicted(tmp_path: Path) -> None:
    profile = written("trl", "qwen2.5-7b", ("RTX 4090",), method="qlora")
    measured = run_validation(profile, "trl", load_matrix(), interpreter(tmp_path, {**TOLD, "oom": False}))
    told = measured.to_json()["validated"]
    assert told["status"] == "measured"
    assert told["measured_reserved_bytes"] == 20 << 30
    assert told["predicted_reserved_bytes"] == profile.to_json()["memory"]["peak_reserved_bytes"]
    assert measured.files == profile.files


def test_an_out_of_memory_steps_down_and_says_so(tmp_path: Path) -> None:
    profile = written("trl", "qwen2.5-7b", ("RTX 4090",), method="qlora")
    python = interpreter(tmp_path, {**TOLD, "oom": True}, {**TOLD, "oom": False})
    measured = run_validation(profile, "trl", load_matrix(), python)
    assert profile.found.need
    assert measured.found.need
    assert measured.found.need.device_bytes < profile.found.need.device_bytes
    assert "ran out of memory with qlora" in measured.to_json()["validated"]["notes"][0]
    assert measured.files != profile.files


def test_when_every_step_down_runs_out_nothing_is_recommended(tmp_path: Path) -> None:
    profile = written("trl", "qwen2.5-7b", ("RTX 4090",), method="qlora")
    python = interpreter(tmp_path, *({**TOLD, "oom": True},) * 4)
    measured = run_validation(profile, "trl", load_matrix(), python)
    assert measured.exit_code == 1
    assert measured.to_json()["choice"] is None


def test_a_trial_that_cannot_run_is_no_answer(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'ModuleNotFoundError: No module named torch' >&2\nexit 1\n")
    script.chmod(0o755)
    profile = written("trl", "qwen2.5-7b", ("RTX 4090",), method="qlora")
    with pytest.raises(Unavailable, match="No module named torch"):
        run_validation(profile, "trl", load_matrix(), str(script))


def test_a_trial_is_the_choice_shortened() -> None:
    found = written("trl", "qwen2.5-7b", ("RTX 4090",), method="qlora").found
    assert found.choice is not None
    request = trial_request(found, load_matrix())
    assert request["setting"]["batch"] == found.choice.batch
    assert request["setting"]["grad_accum"] == min(2, found.choice.grad_accum)
    assert request["config"]["hidden_size"] == 3584
    assert request["arguments"]["per_device_train_batch_size"] == found.choice.batch
    own = choose_profile("qwen2.5-0.5b", gpus=["H200"], framework="trl").found
    assert trial_request(own, load_matrix())["trainer"] == "trl"


def test_what_another_trainer_takes_is_not_measured_by_transformers_own(tmp_path: Path) -> None:
    python = interpreter(tmp_path, {**TOLD, "oom": True}, {**TOLD, "oom": False})
    asked = {"gpus": ["H200"], "method": "full"}
    full = choose_profile("qwen3-4b", framework="axolotl", **asked)  # whose loader widens tables and norms
    told = run_validation(full, "axolotl", load_matrix(), python).to_json()["validated"]
    assert told["status"] == "predicted"
    assert "transformers' Trainer" in told["notes"][0]
    alike = choose_profile("qwen3-4b", framework="transformers", **asked)
    assert run_validation(alike, "transformers", load_matrix(), python).validated["status"] == "measured"


def test_what_is_tried_is_written_for_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a card named no versions were read, and an older release was given the newest one's keys."""
    monkeypatch.setattr("envdoctor.profile.validate.run_validation", lambda profile, *_: profile)
    found = choose_profile("qwen2.5-0.5b", gpus=["H200"], validate=True).found
    assert found.work.stack.has("pytest")
    assert not choose_profile("qwen2.5-0.5b", gpus=["H200"]).found.work.stack.versions


def test_a_frameworks_own_entry_is_told_what_its_file_says() -> None:
    stack = {"llamafactory": "0.9.5", "torch": "2.11.0", "transformers": "5.6.0"}
    asked = {"method": "lora", "task": "dpo", "seq": 512, "framework": "llamafactory"}
    known = ",".join(f"{name}={version}" for name, version in stack.items())
    found = choose_profile("qwen2.5-0.5b", gpus=["H200"], stack=known, beside_gib=120, **asked).found
    request = trial_request(found, load_matrix())
    assert request["entry"]
    assert request["arguments"]["stage"] == "dpo"
    assert request["arguments"]["cutoff_len"] == 512
    assert request["budget_bytes"] < found.work.room < 21 << 30


def test_a_comparison_is_not_tried_where_its_trainer_is_not_installed(tmp_path: Path) -> None:
    python = interpreter(tmp_path, {**TOLD, "oom": False})
    asked = {"gpus": ["H200"], "method": "lora", "task": "dpo", "framework": "llamafactory"}
    profile = choose_profile("qwen2.5-0.5b", **asked)
    told = run_validation(profile, "llamafactory", load_matrix(), python).to_json()["validated"]
    assert told["status"] == "predicted"
    assert "not installed" in told["notes"][0]
