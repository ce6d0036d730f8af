"""What Python's own sentences mean where no package is known to them: never certain, with a way out."""

from __future__ import annotations

import pytest
from declared import pasted

from envdoctor.findings import Certainty, Finding


@pytest.mark.parametrize(
    ("error", "said", "way"),
    [
        (
            'File "train.py", line 4, in <module>\n    n = len(cfg.blocks)\n'
            "TypeError: object of type 'NoneType' has no len()",
            "cfg.blocks is None",
            "Give cfg.blocks a value",
        ),
        (
            "TypeError: Net.__init__() got an unexpected keyword argument 'width'",
            "does not take width",
            "Take width out",
        ),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'soxi'", "program soxi", "which soxi"),
        ("ModuleNotFoundError: No module named 'gizmo.nets'", "no gizmo.nets", "print(gizmo.__path__)"),
    ],
)
def test_a_sentence_of_the_interpreter_tells_what_it_means(error: str, said: str, way: str) -> None:
    found = answered(f"Traceback (most recent call last):\n  {error}\n")
    assert said in found.summary
    assert way in " ".join(part for one in found.remedies for part in (one.text, *one.commands))
    assert found.certainty is Certainty.UNCERTAIN


def test_a_private_argument_is_nobodys_setting() -> None:
    found = answered("TypeError: Net.__init__() got an unexpected keyword argument '_mask_hint'\n")
    assert not any("Take" in one.text for one in found.remedies)


def test_a_module_of_python_itself_is_not_looked_for_on_an_index() -> None:
    line = "ERROR: Could not find a version that satisfies the requirement shutil (from versions: none)\n"
    assert (
        "module of Python itself"
        in pasted(f"{line}ERROR: No matching distribution found for shutil\n")["INDEX-OFFERS-NONE"].summary
    )


def test_a_replica_that_ran_out_of_memory_is_no_fault_of_its_device() -> None:
    error = "torch.OutOfMemoryError: Caught OutOfMemoryError in replica 0 on device 0.\n"
    found = pasted(f"{error}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB.\n")
    assert "DATAPARALLEL-DEVICE" not in found
    assert "OOM-GENERAL" in found


def answered(text: str) -> Finding:
    return pasted(text)["PYTHON-SAYS"]
