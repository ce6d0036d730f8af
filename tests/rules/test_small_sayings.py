"""What a finding says beside its summary, and where none is to be made."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Distribution, Environment, Facts
from envdoctor.findings import Finding
from envdoctor.matrix import load_matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.pastes import parse_paste
from envdoctor.rules.recorded import Recorded

RECORD = None  # what is told here is asked for whole
MATRIX = load_matrix()


def found(text: str, identity: str) -> Finding | None:
    diagnosis = diagnose_facts(parse_paste(text, "", MATRIX.lexicon), MATRIX)
    return next((one for one in diagnosis.findings if one.id == identity), None)


@pytest.mark.parametrize(
    ("listed", "said"), [("transformers 4.56.0\n", " Here is 4.56.0."), ("", "without since.")]
)
def test_a_model_type_that_is_taken_names_the_transformers_that_is_told(listed: str, said: str) -> None:
    line = "ValueError: 'aimv2' is already used by a Transformers config, pick another name."
    taken = found(f"{listed}{line}", "MODEL-TYPE-TAKEN")
    assert taken is not None
    assert taken.cause.endswith(said)


@pytest.mark.parametrize(("have", "is_pair"), [("2.1.0+cpu", False), ("2.1.0+cu118", True)])
def test_an_xformers_beside_a_cpu_build_is_no_question_of_its_pair(have: str, is_pair: bool) -> None:
    line = "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:"
    pair = f"PyTorch 2.1.1+cu121 with CUDA 1201 (you have {have})"
    text = "\n    ".join((line, pair, "Python  3.10.13 (you have 3.10.13)"))
    assert (found(text, "XFORMERS-TORCH") is not None) == is_pair


@pytest.mark.parametrize(
    ("names", "machine"), [(("torch", "numpy"), None), (("torch", "triton", "nvidia-cublas-cu12"), "x86_64")]
)
def test_a_machine_is_guessed_only_where_torch_asks_for_more_on_it(
    names: tuple[str, ...], machine: str | None
) -> None:
    listed = {name: Distribution(name, "pip list", version="2.4.0") for name in names}
    facts = Facts(environment=Environment(distributions=listed))
    assert Recorded(facts, load_snapshot(MATRIX.folder))._machine(facts) == machine


RAN_OUT = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of"
    " 23.69 GiB of which 101.44 MiB is free. Process 3177 has {} GiB memory in use. Including non-PyTorch"
    " memory, this process has {} GiB memory in use. Of the allocated memory 1.10 GiB is used by PyTorch."
)


@pytest.mark.parametrize(
    ("theirs", "own", "certainty"),
    [("22.10", "1.47", "likely"), ("9.00", "14.50", "uncertain"), ("1.00", "22.50", None)],
)
def test_whose_memory_it_is_that_ran_out(theirs: str, own: str, certainty: str | None) -> None:
    shared = found(RAN_OUT.format(theirs, own), "OOM-NEIGHBOUR")
    assert (shared.certainty.value if shared else None) == certainty


def test_nccl_in_a_container_without_shared_memory_is_told_first() -> None:
    text = "docker run --gpus all vllm/vllm-openai:v0.7.1\nRuntimeError: NCCL error: unhandled system error"
    small = found(text, "SHM-UNASKED")
    assert small is not None
    assert small.remedies[0].commands[0] == "docker run --ipc=host …"


TOKENS = "ValueError: Image features and image tokens do not match: tokens: 1500, features 1564"


@pytest.mark.parametrize(
    ("run", "flag"),
    [
        ("llamafactory 0.9.2\ncutoff_len: 1024", "--cutoff_len 8192"),
        ("vllm serve a/b", "--max-model-len 32768"),
    ],
)
def test_a_remedy_names_the_flags_of_the_program_that_ran(run: str, flag: str) -> None:
    cut = found(f"{run}\n{TOKENS}", "VLLM-MM-TOKENS")
    assert cut is not None
    assert cut.remedies[0].commands[0] == flag


REMOTE = """transformers {}
Traceback (most recent call last):
  File "/root/.cache/huggingface/modules/transformers_modules/m/modeling_m.py", line 9, in forward
    self.layer(x, use=1)
TypeError: forward() got an unexpected keyword argument 'use'
"""


@pytest.mark.parametrize(("version", "pins"), [("5.1.0", {"transformers": "==4.57.6"}), ("4.48.3", {})])
def test_a_major_release_of_years_ago_is_nothing_to_go_back_behind(
    version: str, pins: dict[str, str]
) -> None:
    suspected = found(REMOTE.format(version), "RELEASE-SUSPECTED")
    assert suspected is not None
    assert suspected.remedies[0].pins == pins
