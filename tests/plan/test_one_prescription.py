"""One plan for all findings: as small as can be, for the examined interpreter, judged again."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from envdoctor.cli import main
from envdoctor.diagnosis import PlanWish, diagnose_facts
from envdoctor.facts import Distribution, DriverVersion, Environment, Facts, Gpu, Host, Observed
from envdoctor.facts.model import Driver
from envdoctor.findings import Plan, Remedy, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.plan.advice import read_advice
from envdoctor.plan.following import apply_changes, new_findings

MATRIX = load_matrix()


def machine(installed: Mapping[str, str], *, driver: str = "", gpu: str = "", **more: Any) -> Facts:
    listed = {name: Distribution(name, "pip list", version) for name, version in installed.items()}
    environment = Environment(
        python=Observed("3.11.7", "t"),
        executable=Observed("/srv/train/.venv/bin/python", "its path"),
        kind=Observed("venv", "t"),
        distributions={**listed, **more.pop("distributions", {})},
        **more,
    )
    return Facts(
        origin="probe",
        environment=environment,
        driver=Driver(version=Observed(DriverVersion.parse(driver), "t")) if driver else Driver(),
        gpus=Observed((Gpu(0, "t", name=gpu),) if gpu else (), "t"),
        host=Host(os=Observed("linux", "t"), arch=Observed("x86_64", "t"), glibc=Observed("2.35", "t")),
    )


def planned(facts: Facts, **wish: Any) -> Plan:
    plan = diagnose_facts(facts, wish=PlanWish(**wish)).plan
    assert plan is not None
    return plan


def moves(plan: Plan) -> dict[str, tuple[str | None, str | None]]:
    return {move.name: (move.old, move.new) for move in plan.moves}


def test_one_command_for_the_examined_interpreter_mends_all_findings() -> None:
    facts = machine({"trl": "0.7.11", "transformers": "4.40.1", "torch": "2.2.1", "numpy": "2.0.1"})
    plan = planned(facts)
    assert plan.complete
    assert plan.unsolved == ()
    assert {"transformers", "numpy"} == set(moves(plan)) or len(plan.moves) <= 2
    (command,) = plan.commands
    assert command.startswith("/srv/train/.venv/bin/python -m pip install ")


def test_what_a_complete_plan_leads_to_has_no_error() -> None:
    facts = machine({"peft": "0.15.0", "transformers": "4.41.2", "bitsandbytes": "0.42.0", "torch": "2.6.0"})
    diagnosis = diagnose_facts(facts, MATRIX)
    assert diagnosis.plan is not None
    assert diagnosis.plan.complete
    after = apply_changes(facts, {m.name: m.new for m in diagnosis.plan.moves if m.new})
    assert not [f for f in new_findings((), after, MATRIX) if f.severity is Severity.ERROR]


def test_a_package_can_be_kept() -> None:
    facts = machine({"trl": "0.7.11", "transformers": "4.40.1", "torch": "2.2.1"})
    assert set(moves(planned(facts, keep=["trl"]))) == {"transformers"}
    assert set(moves(planned(facts, keep=["transformers"]))) == {"trl"}


def test_a_driver_that_no_package_change_answers_is_asked_of_the_administrator() -> None:
    plan = planned(machine({"torch": "2.14.0"}, driver="390.30", gpu="NVIDIA H100 80GB HBM3"))
    assert not plan.complete
    assert plan.unsolved
    assert any("driver" in words and words.startswith("Please: ") for words in plan.host)


def test_a_damaged_package_is_installed_again_as_it_is() -> None:
    damaged = Distribution("requests", "requests-2.32.3.dist-info", "2.32.3", problems=("holds no RECORD",))
    plan = planned(machine({"pip": "25.0"}, distributions={"requests": damaged}, complete=True))
    assert moves(plan) == {"requests": ("2.32.3", "2.32.3")}
    assert "--force-reinstall --no-deps requests==2.32.3" in plan.commands[0]


def test_the_other_package_moves_where_no_remedy_can_be_had() -> None:
    """The remedy is the torch that this torchaudio was built for, and torch is to stay."""
    facts = machine({"torch": "2.11.0", "torchaudio": "2.2.0", "torchvision": "0.26.0"})
    plan = planned(facts, keep=["torch"])
    assert plan.complete
    assert {move.name for move in plan.moves if move.old} == {"torchaudio"}


def test_a_package_that_moves_asks_for_other_things_then() -> None:
    """What httpcore 0.9 requires is not recorded; it is itself too old for httpx, and h11 is no fault."""
    listed = {
        "httpx": ("0.28.1", ("httpcore==1.*",)),
        "httpcore": ("0.9.1", ("h11<0.10,>=0.8", "h2==3.*")),
        "h11": ("0.16.0", ()),
    }
    found = {n: Distribution(n, f"{n}.dist-info", v, requires=r) for n, (v, r) in listed.items()}
    found |= {n: Distribution(n, "t", v) for n, v in (("anyio", "4.9.0"), ("certifi", "2025.4.26"))}
    plan = planned(machine({"pip": "25.0"}, distributions=found, complete=True))
    assert {move.name for move in plan.moves if move.old} == {"httpcore"}
    assert any("httpcore==1" in command for command in plan.commands)


def test_an_environment_without_pip_is_changed_by_uv() -> None:
    facts = machine({"trl": "0.7.11", "transformers": "4.40.1"}, complete=True)
    assert all(
        command.startswith("uv pip install --python /srv/train/.venv/bin/python ")
        for command in planned(facts).commands
    )


def test_the_commands_of_every_remedy_name_the_examined_interpreter() -> None:
    facts = machine({"trl": "0.7.11", "transformers": "4.40.1"})
    found = diagnose_facts(facts).findings
    lines = [line for finding in found for remedy in finding.remedies for line in remedy.commands]
    assert lines
    assert all(
        line.startswith("/srv/train/.venv/bin/python -m pip ") for line in lines if " pip " in f" {line}"
    )


def test_a_setting_is_told_with_its_file_and_in_its_spelling() -> None:
    card = parse_paste("GPU: Tesla V100-SXM2-32GB\ntorch: 2.6.0\n", "v.txt", MATRIX.lexicon)
    text = "finetuning_type: lora\ncutoff_len: 2048\nbf16: true\nper_device_train_batch_size: 1\n"
    file = parse_paste(text, "", MATRIX.lexicon, "train.yaml")
    plan = planned(replace(card, settings=file.settings))
    assert [(s.key, s.old, s.new) for s in plan.settings] == [
        ("bf16", "true", "false"),
        ("fp16", None, "true"),
    ]


def test_unknown_releases_are_never_called_complete() -> None:
    owner = Distribution("homegrown", "homegrown.dist-info", "1.0", requires=("unheard-of-package>=2",))
    facts = machine({"pip": "25.0"}, distributions={"homegrown": owner}, complete=True)
    plan = planned(facts)
    assert moves(plan) == {"unheard-of-package": (None, ">=2")}
    assert not plan.complete
    assert any("not known" in note for note in plan.notes)


def test_json_carries_the_plan_as_promised(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"trl==0.7.11\ntransformers==4.40.1\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    main(["diagnose", "--from", "-", "--format", "json"])
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert {"complete", "changes", "commands", "settings", "host", "unsolved"} <= set(plan)
    (change,) = plan["changes"]
    assert set(change) == {"name", "from", "to"}
    assert change["from"] in ("0.7.11", "4.40.1")


def test_the_plan_stands_before_the_findings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"trl==0.7.11\ntransformers==4.40.1\n")))
    main(["diagnose", "--from", "-"])
    text = capsys.readouterr().out
    assert text.index("Examined") < text.index("Plan") < text.index("✗ error")


def test_that_nothing_mends_what_is_kept_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"trl==0.7.11\ntransformers==4.40.1\n")))
    main(["diagnose", "--from", "-", "--keep", "trl", "--keep", "transformers"])
    assert "no change of packages or settings mends it" in capsys.readouterr().out


def test_keeping_what_is_not_there_is_an_unusable_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["diagnose", "--from", "tests/machines/no-gpu-nothing-installed.json", "--keep", "torch"]) == 2
    )
    assert "--keep torch" in capsys.readouterr().err


def test_a_package_that_is_to_be_built_anew_is_rather_raised_than_torch_lowered() -> None:
    text = (
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
        '  File "/x/site-packages/bitsandbytes/autograd/_functions.py", line 451, in matmul_4bit\n'
        "GPU: NVIDIA GeForce RTX 3090\nDriver Version: 550.54\nPython 3.10.14\n"
        "torch==2.6.0+cu124\nbitsandbytes==0.45.0\n"
    )
    plan = planned(parse_paste(text, "", MATRIX.lexicon, ""))
    assert "torch" not in moves(plan)
    assert moves(plan)["bitsandbytes"][1] not in ("0.45.0", None)
    assert not any("--no-build-isolation" in line for line in plan.commands), "it comes as a wheel"


def test_what_was_lowered_is_raised_and_what_needs_it_stays() -> None:
    """One change undoes the break; lowering what needs the new release would be four, and years back."""
    stack = {"accelerate": "1.15.0", "peft": "0.21.2", "huggingface-hub": "1.33.0", "tokenizers": "0.23.3"}
    plan = planned(machine({**stack, "transformers": "4.35.2"}))
    assert plan.complete
    assert set(moves(plan)) == {"transformers"}


def test_a_package_that_is_kept_is_not_left_to_the_installer_either() -> None:
    owner = Distribution("homegrown", "homegrown.dist-info", "1.0", requires=("unheard-of-package>=2",))
    old = Distribution("unheard-of-package", "unheard_of_package.dist-info", "1.0")
    facts = machine({"pip": "25.0"}, distributions={"homegrown": owner, old.name: old}, complete=True)
    assert set(moves(planned(facts))) == {old.name}
    assert planned(facts, keep=[old.name]).moves == ()


def test_an_error_that_becomes_a_mere_note_is_solved() -> None:
    stack = {"transformers": "5.23.0", "safetensors": "0.4.0", "mistral-common": "1.1.0"}
    plan = planned(machine(stack))
    assert "safetensors" in moves(plan)
    assert plan.unsolved == ()


def test_where_a_word_in_ones_own_code_is_best_no_release_is_changed() -> None:
    line = "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'tokenizer'"
    plan = planned(parse_paste(f"trl 0.24.0\n{line}", "", load_matrix().lexicon))
    assert plan.by_hand == (
        "Write processing_class in its place: it goes by that name since. (INTERFACE-MISSING)",
    )
    assert (plan.moves, plan.unsolved, plan.complete) == ((), (), False)
    assert plan.to_json()["notes"] == [f"by hand: {plan.by_hand[0]}"]


def test_what_an_option_takes_is_no_package() -> None:
    command = "uv pip install --index-strategy unsafe-best-match --torch-backend cu126 -c pins.txt torch"
    assert read_advice(Remedy("Look at all indexes.", (command,))).pins == {"torch": ">=0"}


def test_what_is_built_from_source_is_built_for_the_torch_that_is_there_whatever_its_release() -> None:
    text = "`flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol:` error"
    plan = diagnose_facts(parse_paste(text, "paste", MATRIX.lexicon)).plan
    assert plan is not None
    assert all("--no-build-isolation" in command for command in plan.commands)


def test_a_module_that_is_missing_comes_in_though_no_list_is_whole() -> None:
    text = "torch 2.6.0\ntransformers 4.51.3\nModuleNotFoundError: No module named 'peft'"
    plan = planned(parse_paste(text, "", MATRIX.lexicon))
    assert [(move.name, move.old) for move in plan.moves] == [("peft", None)]
    assert plan.unsolved == ()


def test_a_torch_for_a_driver_that_is_not_told_is_no_certain_plan() -> None:
    missing = "ImportError: cannot import name 'is_opaque_value' from 'torch._library.opaque_object'"
    texts = (
        f"Python 3.12.4\n{driver}torch==2.5.1+cu121\n{missing}" for driver in ("", "Driver Version: 595.40\n")
    )
    plain, told = (planned(parse_paste(text, "", MATRIX.lexicon)) for text in texts)
    assert told.complete
    assert not plain.complete
    assert [note.partition(": torch")[0] for note in plain.notes] == ["the driver is not told"]


def test_variables_are_set_as_the_machines_own_shell_takes_them() -> None:
    failed = "UnicodeDecodeError: 'charmap' codec can't decode byte 0x81 in position 105"
    windows = 'File "C:\\work\\train.py", line 3\n'
    here, there = (planned(parse_paste(f"{place}{failed}", "", MATRIX.lexicon)) for place in ("", windows))
    assert here.commands == ("export PYTHONUTF8=1 LC_ALL=C.UTF-8",)
    assert there.commands == ("set PYTHONUTF8=1", "set LC_ALL=C.UTF-8")


@pytest.mark.parametrize("own", [(3, 10, 13), (3, 12, 1), (3, 14, 0)])
def test_what_mends_a_text_without_a_python_hangs_on_its_releases_and_not_on_our_own(
    own: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No wheel of xformers 0.0.22 is for a Python after 3.11, and none of torch 2.0.1 either."""
    text = "xformers 0.0.22 requires torch==2.0.1, but you have torch 2.3.0 which is incompatible.\n"
    facts = parse_paste(text, "a log", MATRIX.lexicon)
    told = diagnose_facts(facts, MATRIX)
    monkeypatch.setattr("envdoctor.target.resolve.this_python", lambda: own)
    again = diagnose_facts(facts, MATRIX)
    assert (again.findings, again.plan) == (told.findings, told.plan)
