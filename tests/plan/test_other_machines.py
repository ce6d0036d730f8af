"""What is advised installs where it is advised: another build of torch, another accelerator, no wheel."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import Diagnosis, diagnose_facts
from envdoctor.findings import Plan
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.plan.following import LEAVES

MATRIX = load_matrix()
CARD = "GPU 0: NVIDIA GeForce RTX 4090\nNvidia driver version: 566.36\n"


def diagnosed(text: str) -> Diagnosis:
    return diagnose_facts(parse_paste(text, "", MATRIX.lexicon), MATRIX)


def plan_of(text: str) -> Plan:
    plan = diagnosed(text).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("system", "torch", "build"),
    [
        ("Ubuntu 22.04.4 LTS (x86_64)", "2.6.0+cpu", "cu124"),
        ("Microsoft Windows 11 Pro", "2.6.0+cpu", "cu"),
        ("Microsoft Windows 11 Pro", "2.6.0", "cu"),
    ],
)
def test_a_cpu_torch_goes_by_the_label_and_the_index_of_a_cuda_build(
    system: str, torch: str, build: str
) -> None:
    """pip takes an installed 2.6.0+cpu for 2.6.0, and the default index has no CUDA build for Windows."""
    vision = torch.replace("2.6.0", "0.21.0")
    text = (
        f"OS: {system}\nPython version: 3.11.9\n{CARD}[pip3] torch=={torch}\n[pip3] torchvision=={vision}\n"
    )
    (command,) = plan_of(text).commands
    assert f"https://download.pytorch.org/whl/{build}" in command
    assert f"torch==2.6.0+{build}" in command
    assert f"torchvision==0.21.0+{build}" in command


def test_a_torch_that_says_it_has_no_cuda_is_a_cpu_build() -> None:
    text = "PyTorch version: 2.6.0\nCUDA used to build PyTorch: {}\nOS: Ubuntu 22.04.4 LTS (x86_64)\n" + CARD
    assert [f.id for f in diagnosed(text.format("None")).findings] == ["TORCH-CPU-BUILD"]
    assert not diagnosed(text.format("N/A")).findings
    assert not diagnosed(text.format("12.4")).findings


@pytest.mark.parametrize(("build", "backend"), [("rocm6.2", True), ("cu121", False)])
def test_torch_for_another_accelerator_comes_from_its_own_index(build: str, backend: bool) -> None:
    raised = "ModuleNotFoundError: No module named 'torch.nn.attention.flex_attention'"
    text = f"OS: Ubuntu 22.04\nPython 3.11.9\ntorch==2.3.1+{build}\n\n{raised}\n"
    diagnosis = diagnosed(text)
    said = [*(diagnosis.plan.commands if diagnosis.plan else ()), *diagnosis.findings[0].remedies[0].commands]
    assert said
    assert all(line.endswith(" --torch-backend=auto") is backend for line in said)


@pytest.mark.parametrize(("system", "backend"), [("Microsoft Windows 11 Pro", True), ("Ubuntu 22.04", False)])
def test_torch_for_windows_comes_from_the_index_that_has_it_for_cuda(system: str, backend: bool) -> None:
    (finding, *_) = diagnosed(
        f"OS: {system}\ntorch: 2.9.1+cu128\nxformers: 0.0.33\ntorch.cuda.is_available() returns False\n"
    ).findings
    (command,) = (c for r in finding.remedies for c in r.commands if "torch==2.9.0" in c)
    assert command.endswith(" --torch-backend=auto") is backend


@pytest.mark.parametrize(
    ("system", "lacks"), [("macOS 14.5 (x86_64)", True), ("Ubuntu 22.04.4 LTS (x86_64)", False)]
)
def test_what_has_no_wheel_for_the_machine_is_said_to_have_none(system: str, lacks: bool) -> None:
    text = f"OS: {system}\nPython version: 3.11.9\ntorch==2.2.2\n\n"
    (finding, *_) = diagnosed(f"{text}ModuleNotFoundError: No module named 'vllm'\n").findings
    assert ("vllm has no wheel for CPython 3.11" in finding.remedies[0].text) is lacks


def test_a_remedy_that_leaves_a_warning_says_so_or_is_made_whole() -> None:
    text = (
        "Python 3.11.9\npip freeze\ntorch==2.1.0\ntorchvision==0.16.0\nxformers==0.0.22.post4\nvllm==0.4.0\n"
    )
    for finding in diagnosed(text).findings:
        for remedy in finding.remedies:
            moved = [name for name in ("torchvision", "xformers") if name in " ".join(remedy.commands)]
            assert not remedy.pins or "torch" not in remedy.pins or moved or LEAVES in remedy.text
