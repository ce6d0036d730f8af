"""What stands between a machine and a run: each line by its row, never certain."""

from __future__ import annotations

import pytest
from declared import pasted

from envdoctor.findings import Certainty


@pytest.mark.parametrize(
    ("line", "row", "way"),
    [
        ("SyntaxError: f-string: unmatched '('", "PYTHON-NEW-SYNTAX", "--python 3.12"),
        ("ValueError: cannot find context for 'fork'", "START-METHOD-ABSENT", "wsl"),
        ("ModuleNotFoundError: No module named 'encodings'", "PYTHON-HOME-ASTRAY", "unset PYTHONHOME"),
        ("error in x setup command: use_2to3 is invalid.", "SETUPTOOLS-2TO3", "setuptools<58"),
        (
            "libx.so: cannot enable executable stack as shared object requires",
            "GLIBC-EXECUTABLE-STACK",
            "elf",
        ),
        ("undefined reference to `dlopen'", "LINK-UNDEFINED", "-ldl"),
        ("undefined reference to `foo@GLIBCXX_3.4.29'", "LINK-NEWER-LIBRARY", "gxx_linux-64"),
        ("nvlink fatal   : Input file 'x.o' newer than toolkit (123 vs 121)", "NVLINK-NEWER", "CUDA_HOME"),
        ("make: *** No rule to make target 'foo'.  Stop.", "MAKE-STOPS", "cmake -B build"),
        ("Could not create named generator Visual Studio 17 2022", "CMAKE-GENERATOR", "Ninja"),
        ("nvml vram init failure: 999", "NVML-CODE", "nvidia_uvm"),
        ("error: MIG-GPU-932bfb2c-849a-2a22-1e84/1/0: unknown device", "MIG-OLD-NAME", "nvidia-smi -L"),
        ("exec /entrypoint.sh: no such file or directory", "CONTAINER-ENTRY-ABSENT", "sed -i"),
        ("Unit docker.service not found.", "DOCKER-UNIT-ABSENT", "restart docker"),
        ("SafetensorError: device meta is invalid", "SAFETENSORS-DEVICE", "safetensors"),
        ("File does not contain tensor model.norm.weight", "SAFETENSORS-TENSOR-ABSENT", "--force-download"),
        ("Can't get attribute 'Net' on <module '__main__'>", "PICKLED-CLASS-ABSENT", "state_dict"),
        ("KeyError: 'model_state_dict'", "CHECKPOINT-LAYOUT", "torch.load"),
        ("gguf_init_from_file: failed to open GGUF file 'x.gguf'", "GGUF-NOT-OPENED", "ls -la"),
        ("ValueError: Only GGJTv3 supported", "GGML-OLD-FILE", "convert_hf_to_gguf"),
        ("model.load_from_checkpoint('a.ckpt')", "CLASS-METHOD-ON-INSTANCE", "Assign"),
    ],
)
def test_a_line_is_answered_by_its_row(line: str, row: str, way: str) -> None:
    found = pasted(f"{line}\n")[row]
    assert way in " ".join(part for one in found.remedies for part in (one.text, *one.commands))
    assert found.certainty is not Certainty.CERTAIN


def test_a_listed_release_that_pip_refuses_tells_of_its_metadata() -> None:
    found = pasted(
        "ERROR: Could not find a version that satisfies the requirement pytorch-lightning==1.5.10"
        " (from versions: 1.5.9, 1.5.10, 1.5.10.post0, 2.4.0)\n"
        "ERROR: No matching distribution found for pytorch-lightning==1.5.10\n"
    )["INDEX-OFFERS-OTHERS"]
    assert "invalid metadata" in found.summary
    assert "python -m pip install 'pip<24.1'" in found.remedies[0].commands
    assert "1.5.10.post0" in found.remedies[1].text
