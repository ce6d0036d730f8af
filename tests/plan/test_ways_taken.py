"""Which of a finding's ways a plan takes: one alone, and none that its words leave to their reader."""

from __future__ import annotations

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Diagnosis
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

CUDNN = "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open"
OPTIMUM = "ImportError: Loading a GPTQ quantized model requires optimum (`pip install optimum`)"
TENSORRT = "ImportError: libnvinfer.so.10: cannot open shared object file: No such file or directory"


def answer(*lines: str) -> Diagnosis:
    return diagnose_facts(parse_paste("\n".join(lines), "", load_matrix().lexicon))


def moved(diagnosis: Diagnosis) -> dict[str, str | None]:
    return {move.name: move.new for move in diagnosis.plan.moves} if diagnosis.plan else {}


def test_what_an_installer_chooses_is_not_joined_by_another_way_out() -> None:
    assert moved(answer(f"{CUDNN} shared object file: No such file or directory")) == {"ctranslate2": ">=4.5"}


def test_a_way_for_other_models_is_not_taken() -> None:
    assert "compressed-tensors" not in moved(answer("transformers 4.51.3\ntorch 2.6.0", OPTIMUM))


def test_what_is_there_is_not_told_to_be_installed() -> None:
    there, absent = (answer(told, TENSORRT) for told in ("TensorRT: 10.0.1", ""))
    first = [one.findings[0].remedies[0].commands for one in (there, absent)]
    assert first[0][0].startswith("export LD_LIBRARY_PATH")
    assert first[1] == ("pip install tensorrt",)
    assert moved(there) == {}


def test_what_a_text_leaves_out_comes_in_a_release_of_the_rests_day() -> None:
    line = "ImportError: cannot import name 'is_torch_xla_available' from 'transformers.utils'"
    frame = '  File "/x/site-packages/trl/trainer/sft_trainer.py", line 30, in <module>'
    new = moved(answer("trl 0.16.0", "Traceback (most recent call last):", frame, line))["transformers"]
    assert new is not None
    assert new.startswith("4."), "trl 0.16 was written years before transformers 5"


def test_a_build_that_a_command_names_is_taken_of_the_release_that_is_there() -> None:
    refused = "The NVIDIA driver on your system is too old (found version 12080)"
    assert moved(answer("driver: 570.86.10", "torch: 2.11.0", refused)) == {"torch": "2.11.0+cu126"}
    lacked = "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"
    assert moved(answer("flash-attn: 2", lacked)) == {"torch": "2.7.1+cu118"}
