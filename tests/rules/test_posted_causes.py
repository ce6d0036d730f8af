"""What whole posts are about: the engine that is named, the title's error, what only warned."""

from __future__ import annotations

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

TRACED = """\
Traceback (most recent call last):
  File "/opt/v/lib/python3.12/site-packages/gizmo/run.py", line 7, in run
    raise ValueError(text)
ValueError: the gizmo is blue
"""


def found_in(text: str) -> dict[str, Finding]:
    return {f.id: f for f in diagnose_facts(parse_paste(text, "", load_matrix().lexicon)).findings}


def test_what_a_logger_does_not_call_an_error_is_a_warning() -> None:
    line = "WARNING 03-12 16:53:28 custom_all_reduce.py:145] your platform lacks P2P or the P2P test failed\n"
    assert found_in(line)["NCCL-P2P-UNSUPPORTED"].severity is Severity.WARNING
    assert found_in(line + TRACED)["NCCL-P2P-UNSUPPORTED"].severity is Severity.WARNING


def test_pairs_are_recorded_of_releases_alone() -> None:
    assert "VLLM-TORCH" in found_in("vllm==0.5.5\ntorch==2.7.1\nnumpy==1.26.4\n")
    for built in ("vllm==0.5.5.20250604", "torchvision==0.20.0.dev20241113"):
        assert not {"VLLM-TORCH", "TORCHVISION-TORCH"} & found_in(f"{built}\ntorch==2.7.1\n").keys()


def test_what_was_asked_for_beside_another_torch_is_not_held_against_this_one() -> None:
    asked = "pip install torch==2.4.1 torchvision==0.19.1\n"
    assert "TORCHVISION-TORCH" not in found_in(f"{asked}PyTorch version: 2.3.1\n")


def test_training_advice_is_none_for_a_server() -> None:
    text = "python -m sglang.launch_server --model-path a/b-7b --context-length 65536\n# it goes OOM again\n"
    assert "OOM-CUTOFF" not in found_in(text)
    assert "OOM-CUTOFF" in found_in(text.replace("sglang.launch_server", "train"))


def test_cards_of_several_machines_are_not_counted_on_one() -> None:
    run = "GPU 0,1,2,3: NVIDIA L40\npython -m sglang.launch_server --model-path a/b-7b --tp 16"
    assert "SETTING-RELATION-CARDS" in found_in(run)
    assert "SETTING-RELATION-CARDS" not in found_in(f"{run} --nnodes 4")


def test_the_engine_that_asks_is_the_one_to_raise() -> None:
    said = (
        "  File '/v/{}/config.py'\nAttributeError: 'OmniConfig' object has no attribute 'num_attention_heads'"
    )
    for engine in ("vllm", "sglang"):
        found = found_in(said.format(engine))["ENGINE-CONFIG-UNKNOWN"]
        assert found.remedies[0].commands == (f"pip install -U {engine}",)
    assert "ENGINE-CONFIG-UNKNOWN" not in found_in(said.format("gizmo"))


def test_the_titles_error_is_what_a_post_without_traceback_is_about() -> None:
    text = (
        "# [Bug] report RuntimeError: mat_a must be 2D\n\n1)sglang[all] version 0.4.5.* is error\n"
        "2)sglang[all] version 0.4.4.*  is ok\n\n"
        "/usr/bin/python3: Error while finding module (ModuleNotFoundError: No module named 'check')\n"
    )
    assert found_in(text)["RELEASE-BLAMED"].remedies[0].pins == {"sglang": "==0.4.4"}


def test_a_card_that_only_newer_releases_know_is_a_guess_at_trouble_in_words() -> None:
    found = found_in("# Not working\n\nIt is not working on my RTX 5080, I tried all.\n")["BLACKWELL-SAID"]
    assert (found.severity, found.certainty) == (Severity.ERROR, Certainty.UNCERTAIN)
    assert "BLACKWELL-SAID" not in found_in("# Not working\n\nIt is not working on my RTX 3090 at all.\n")


def test_an_extension_that_a_library_goes_without_is_a_warning() -> None:
    line = (
        "Skipping import of cpp extensions: /v/lib/python3.10/dist-packages/torchao/_C.abi3.so: "
        "undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationE\n"
    )
    assert found_in(line)["ABI-TORCHAO"].severity is Severity.WARNING


def test_the_file_of_the_failed_kernel_names_the_package_that_lacks_it() -> None:
    text = (
        "GPU: A100\ntorch: 2.3.1\nRuntimeError: CUDA error: no kernel image is available (at /h/gizmo/g.cu:3)"
    )
    assert "/h/gizmo/g.cu" in found_in(text)["EXTENSION-NO-KERNEL"].summary


def test_a_name_that_another_projects_file_lacks_sets_two_releases_apart() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/opt/NeMo/nemo/hyena.py", line 30, in <module>\n'
        "    from gizmo.core import Group\n"
        "ImportError: cannot import name 'Group' from 'gizmo.core' (/opt/gizmo-lm/gizmo/core.py)\n"
    )
    assert "RELEASES-APART" in found_in(text)
    assert "RELEASES-APART" not in found_in(text.replace("/opt/gizmo-lm/", "/opt/NeMo/"))


def test_a_group_without_a_backend_for_the_tensors_device_is_told_by_that_device() -> None:
    line = "[rank0]: RuntimeError: No backend type associated with device type {}\n"
    assert {"PG-NO-BACKEND-CPU", "PG-NO-BACKEND-CARD"} & found_in(line.format("cpu")).keys() == {
        "PG-NO-BACKEND-CPU"
    }
    assert "PG-NO-BACKEND-CARD" in found_in(line.format("cuda"))
