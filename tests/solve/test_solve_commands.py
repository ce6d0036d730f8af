"""`pin` and `why-not` from the command line, on the shipped facts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envdoctor.cli import main

ON = ["--python-version", "3.11", "--platform", "x86_64-manylinux_2_35"]


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main([*words])
    out, err = capsys.readouterr()
    return code, out, err


def test_constraints_say_for_what_they_are_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(capsys, "pin", "torch<2.10", "--gpu", "T4", *ON)
    assert code == 0
    head = out.splitlines()[:4]
    assert head[0].startswith("# envdoctor ")
    assert "what came out later was not read" in head[1]
    assert head[2] == "# for Python 3.11 on x86_64-manylinux_2_35; T4 (sm_75)"
    assert head[3].endswith(
        "pin 'torch<2.10' --gpu T4 --python-version 3.11 --platform x86_64-manylinux_2_35"
    )
    assert "torch==2.9.1\n    # asked for as torch<2.10\n" in out
    assert "\ntriton==3.5.1\n    # torch 2.9.1 requires ==3.5.1\n" in out


def test_the_same_input_gives_the_same_bytes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = answer(capsys, "pin", "transformers", "peft", *ON)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "other"))
    assert answer(capsys, "pin", "transformers", "peft", *ON) == first


def test_a_variant_is_written_in_the_form_that_pip_and_uv_read(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(capsys, "pin", "torch", "torchvision", "--gpu", "V100", *ON)
    assert code == 0
    assert "--extra-index-url https://download.pytorch.org/whl/cu126\n" in out
    assert "uv pip install --index-strategy unsafe-best-match" in out
    assert "+cu126\n" in next(line + "\n" for line in out.splitlines() if line.startswith("torch=="))
    assert "+cu126" in next(line for line in out.splitlines() if line.startswith("torchvision=="))
    assert "not 2.15.0: V100 (sm_70) cannot run it" in out


def test_a_release_of_which_the_driver_runs_no_build_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    on = ("--gpu", "A100", "--driver", "535.183.01", *ON)
    assert "    # not 2.15.0: driver 535.183.01 cannot run it\n" in answer(capsys, "pin", "torch", *on)[1]
    assert "cannot run it" not in answer(capsys, "pin", "torch<2.15", *on)[1]


def test_a_release_known_only_without_gpu_code_is_not_put_on_the_card(
    capsys: pytest.CaptureFixture[str],
) -> None:
    on = ("--gpu", "RTX 3060", "--python-version", "3.12", "--platform", "windows")
    out = answer(capsys, "pin", "torch", *on)[1]
    assert "# not 2.15.0: only a build without GPU code is known of it for windows\n" in out


def test_what_a_release_of_unread_requirements_needs_is_not_silently_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = answer(capsys, "pin", "sacrebleu==1.5.0", "--allow-source", "--offline", *ON)
    assert code == 0
    assert "sacrebleu 1.5.0: what it requires is not known; it is taken as if it required nothing" in err


def test_json_is_the_contracts(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = answer(capsys, "pin", "torch", "--gpu", "V100", "--format", "json", *ON)
    told = json.loads(out)
    assert (code, err, told["schema"], told["status"]) == (0, "", "envdoctor.pins/1", "solved")
    torch = next(pin for pin in told["pins"] if pin["name"] == "torch")
    assert torch["index"] == "cu126"
    assert "+" not in torch["version"]
    assert told["target"]["gpus"] == [{"name": "V100", "compute_capability": "7.0"}]


def test_a_conflict_is_exit_1_with_causes_and_relaxations(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(capsys, "pin", "transformers<4.38", "peft>=0.14", "--format", "json", *ON)
    told = json.loads(out)
    assert (code, told["status"], told["pins"]) == (1, "conflict", [])
    assert [cause["kind"] for cause in told["conflict"]["causes"]] == ["request", "request", "row"]
    dropped = {one["drop"]: one["gives"] for one in told["conflict"]["relaxations"]}
    assert dropped[">=0.14 of peft"]["peft"] == "0.13.2"


def test_a_conflict_leaves_the_file_of_pins_as_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "constraints.txt"
    file.write_text("torch==2.6.0\n", encoding="utf-8")
    code, out, err = answer(capsys, "pin", "transformers<4.38", "peft>=0.14", "-o", str(file), *ON)
    assert (code, file.read_text(encoding="utf-8")) == (1, "torch==2.6.0\n")
    assert "peft" in out
    assert f"{file}: not written, there are no pins" in err


def test_torchaudio_comes_with_a_torch_of_its_abi_and_cuda(capsys: pytest.CaptureFixture[str]) -> None:
    def against(*asked: str) -> str:
        return answer(capsys, "why-not", *asked, "--offline", *ON)[1]

    assert "PAIR-TORCHAUDIO-2.11.0" in against("torchaudio==2.11.0", "torch==2.10.0")
    assert "TORCHAUDIO-OTHER-CUDA" in against("torchaudio==2.11.0", "torch==2.15.0")
    assert "PAIR-TORCHAUDIO-2.11.1" in against("torchaudio==2.11.1", "torch==2.12.1")
    assert "nothing forbids it" in against("torchaudio==2.11.1", "torch==2.15.0")


@pytest.mark.parametrize("beside", ["cuda-toolkit==12.9.1", "cuda-bindings==13.2.0"])
def test_a_variant_asks_for_the_toolkit_of_its_own_cuda(
    capsys: pytest.CaptureFixture[str], beside: str
) -> None:
    machine = ["--gpu", "A100", "--driver", "560.35.03", "--offline", *ON]
    assert (
        "TORCH-OTHER-TOOLKIT-CU126" in answer(capsys, "why-not", "torch==2.14.1+cu126", beside, *machine)[1]
    )
    alike = answer(capsys, "why-not", "torch==2.14.1+cu126", "cuda-toolkit==12.6.3", *machine)[1]
    assert "nothing forbids it" in alike


@pytest.mark.parametrize("name", ["torchaudio==2.11.0", "torchcodec", "torchao"])
def test_what_imports_torch_without_asking_for_it_brings_torch(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    _, text, _ = answer(capsys, "pin", name, "--offline", *ON)
    assert "\ntorch==" in text


def test_a_name_that_a_stranger_took_over_is_no_way_to_what_needs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = answer(capsys, "pin", "outlines==0.0.46", "--allow-source", "--offline", *ON)
    assert (code, "PAIR-OUTLINES-PYAIRPORTS" in out) == (1, True)


def test_one_set_for_several_cards(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(
        capsys, "pin", "torch", "--gpu", "T4", "--gpu", "H100", "--driver", "550.54.15", *ON
    )
    assert code == 0
    pinned = next(line for line in out.splitlines() if line.startswith("torch=="))
    assert pinned.endswith("+cu126")


def test_a_conflict_shows_the_fewest_lines_to_change_and_they_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file, on = tmp_path / "requirements.txt", ["--gpu", "B200", "--driver", "580.65.06", *ON]
    file.write_text("torch==2.6.0\ntorchvision==0.21.0\nnvidia-cublas-cu12==12.4.5.8\neinops==0.8.0\n")
    code, out, _ = answer(capsys, "pin", "-r", str(file), *on, "--offline", "--format", "json")
    lines = json.loads(out)["conflict"]["lines"]
    assert (code, lines) == (
        1,
        [
            {"old": "torch==2.6.0", "new": "torch==2.7.1", "source": f"{file}:1"},
            {"old": "torchvision==0.21.0", "new": "torchvision==0.22.1", "source": f"{file}:2"},
            {"old": "nvidia-cublas-cu12==12.4.5.8", "new": "", "source": f"{file}:3"},
        ],
    )
    said = answer(capsys, "pin", "-r", str(file), *on, "--offline")[1]
    assert "torch==2.6.0 to torch==2.7.1" in said
    assert "nvidia-cublas-cu12==12.4.5.8, which comes with torch" in said
    told = file.read_text()
    for line in lines:
        told = told.replace(line["old"], line["new"])
    file.write_text(told)
    assert answer(capsys, "pin", "-r", str(file), *on, "--offline")[0] == 0


@pytest.mark.parametrize(
    ("listed", "moves"),
    [("scipy==1.9.0", True), ("pandas==1.3.5", True), ("fire==0.4.0", False)],
    ids=["its files refuse that Python", "its wheels are of other Pythons", "built from source on any"],
)
def test_what_is_listed_stays_where_it_installs_on_the_declared_python(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, listed: str, moves: bool
) -> None:
    (environment := tmp_path / "freeze.txt").write_text(f"{listed}\nsix==1.16.0\n")
    words = ["pin", "--target", str(environment), "--goal", "least-change", "--format", "json"]
    main([*words, "--python-version", "3.12", "--platform", "x86_64-manylinux_2_35"])
    pins = json.loads(capsys.readouterr().out)["pins"]
    assert (listed not in [f"{pin['name']}=={pin['version']}" for pin in pins]) is moves


def test_least_change_for_another_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    environment = tmp_path / "requirements.txt"
    environment.write_text("transformers==4.40.0\npeft==0.14.0\nnumpy==1.26.4\n")
    words = ["pin", "--target", str(environment), "--goal", "least-change", "--format", "json", *ON]
    code, out, _ = answer(capsys, *words)
    assert code == 0
    changes = {change["name"]: (change["from"], change["to"]) for change in json.loads(out)["changes"]}
    assert changes == {"transformers": ("4.40.0", "4.45.2")}


def test_an_installed_release_that_is_not_on_record_stays_and_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    environment = tmp_path / "requirements.txt"
    environment.write_text("torch==2.3.0a0+6ddf5cf85e.nv24.4\ntransformers==4.40.0\n")
    words = ["--target", str(environment), "--goal", "least-change", *ON]
    code, out, _ = answer(capsys, "pin", "accelerate>=0.30", *words)
    assert (code, "\ntorch==" in out) == (0, False)
    assert "# note: torch 2.3.0a0+6ddf5cf85e.nv24.4 is installed and not on record: it stays" in out
    code, out, _ = answer(capsys, "pin", "torchvision==0.20.0", *words)
    out = " ".join(out.split())
    assert code == 1
    assert "torch 2.3.0a0+6ddf5cf85e.nv24.4 is installed and not on record, so that it stays" in out
    assert "without the installed 2.3.0a0+6ddf5cf85e.nv24.4: torchvision 0.20.0" in out


def test_requirements_from_files_and_from_arguments(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "base.txt").write_text("# the base\ntokenizers>=0.20 ; python_version > '3.8'\n")
    (tmp_path / "top.txt").write_text("-r base.txt\nhuggingface-hub \\\n  <1.0  # old\n")
    code, out, _ = answer(capsys, "pin", "-r", str(tmp_path / "top.txt"), "--format", "requirements", *ON)
    assert code == 0
    assert "\ntokenizers==" in out
    assert "\nhuggingface-hub==0." in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["pin", "torch=>2"], "request: torch=>2"),
        (["pin", "torch", "--gpu", "RTX 9999"], "--gpu RTX 9999"),
        (["pin", "torch", "--driver", "new"], "--driver new"),
        (["pin", "torch", "--platform", "plan9"], "--platform plan9"),
        (["pin", "torch", "--exclude-newer", "yesterday"], "--exclude-newer yesterday"),
        (["pin", "-r", "nowhere.txt"], "nowhere.txt: cannot be read"),
    ],
)
def test_an_unusable_call_is_exit_2(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    code, out, err = answer(capsys, *words)
    assert (code, out) == (2, "")
    assert says in err


def test_a_package_that_the_facts_do_not_cover_is_exit_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = answer(capsys, "pin", "no-such-package-at-all", *ON)
    assert code == 3
    assert "no-such-package-at-all: not judged" in err


def test_a_lock_offline_is_exit_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = answer(capsys, "pin", "einops", "--format", "pylock", "--offline", *ON)
    assert (code, out) == (3, "")
    assert "--offline" in err


def test_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(capsys, "why-not", "flash-attn==2.8.3", "--gpu", "T4", "--format", "json", *ON)
    told = json.loads(out)
    assert (code, told["schema"], told["forbidden"]) == (1, "envdoctor.why-not/1", True)
    assert "T4 (sm_75) cannot run flash-attn 2.8.3" in told["causes"][1]["text"]
    assert answer(capsys, "why-not", "einops", *ON) == (0, "nothing forbids it\n", "")


def test_of_a_package_that_nobody_knows_nothing_is_said_to_forbid_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = answer(capsys, "why-not", "trnsformers", "--offline", "--format", "json", *ON)
    told = json.loads(out)
    assert (code, told["forbidden"]) == (3, None)
    assert "nearest: transformers" in told["notes"][0]


def test_what_hangs_on_unread_requirements_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(capsys, "why-not", "sglang==0.5.3rc0", "--format", "json", *ON)
    assert (code, json.loads(out)["forbidden"]) == (3, None)
    code, out, err = answer(capsys, "pin", "sglang==0.5.3rc0", *ON)
    assert (code, err) == (3, "")
    assert "what sglang 0.5.3rc0 requires is not known" in out
    assert "No environment" not in out


def test_a_driver_counts_without_a_card(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(capsys, "pin", "torch", "--driver", "535.183.01", *ON)
    assert code == 0
    assert "+cu126" in next(line for line in out.splitlines() if line.startswith("torch=="))


def test_an_old_diffusers_gets_the_hub_that_it_imports_from(capsys: pytest.CaptureFixture[str]) -> None:
    """Its metadata sets no upper bound, and no release of it before 0.29 imports with hub 0.26."""
    _, out, _ = answer(capsys, "pin", "diffusers<=0.26.1", "transformers", "--offline", *ON)
    assert "\nhuggingface-hub==0.25.2\n" in out
    assert "not 0.36.2: diffusers <0.29 with huggingface-hub >=0.26 does not work" in out


def test_a_release_that_is_not_there_is_told_with_those_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(capsys, "why-not", "flash-attn==2.7.4", *ON)
    assert code == 1
    assert out.startswith("✗ 1 cause forbids it\n")
    assert "nearest: 2.7.3 and 2.7.4.post1" in " ".join(out.split())


def test_two_cards_in_one_name_are_one_kind_of_card(capsys: pytest.CaptureFixture[str]) -> None:
    assert "; H100 (sm_90)\n" in answer(capsys, "pin", "torch", "--gpu", "8xH100", *ON)[1]
