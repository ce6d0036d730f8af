"""One line or a few, and everything that is read of them: what no longer text says by another line, too."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

from envdoctor.cli import main
from envdoctor.errors import InputError
from envdoctor.facts import REPORTED
from envdoctor.facts.codec import to_json
from envdoctor.matrix import load_matrix
from envdoctor.pastes.files import parse_text, read_window

SMI = "index, gpu_name, gpu_uuid, gpu_bus_id, memory.total [MiB]\n"
CONDA = "# packages in environment at /opt/conda/envs/x:\n# Name  Version  Build  Channel\n"
ACCELERATE = "environment.distributions.accelerate.version"
EXAMPLES = [
    # cards
    (SMI + "0, NVIDIA L4, GPU-1a2b3c4d-0000-1111-2222-333344445555, 00000000:3B:00.0, 23034 MiB",
     {"gpus[0].name": "NVIDIA L4", "gpus[0].pci_bus": "00000000:3B:00.0",
      "gpus[0].uuid": "GPU-1a2b3c4d-0000-1111-2222-333344445555",
      "gpus[0].memory_total_bytes": 23034 << 20}),
    ('>>> torch.cuda.get_device_capability(0)\n(8, 9)', {"gpus[0].compute_capability": "8.9"}),
    (">>> torch.cuda.get_device_name(0)\n'Tesla T4'", {"gpus[0].name": "Tesla T4"}),
    ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1a2b)\n\nname, memory.total [MiB]\nNVIDIA A100, 81920 MiB",
     {"gpus[0].name": "NVIDIA A100-SXM4-80GB", "gpus[0].memory_total_bytes": 81920 << 20}),
    ("GPU 0: NVIDIA A100 (UUID: GPU-1a2b)\n\nname, memory.total [MiB]\nNVIDIA A100-SXM4-80GB, 81920 MiB",
     {"gpus[0].name": "NVIDIA A100-SXM4-80GB", "gpus[0].memory_total_bytes": 81920 << 20}),
    ("GPU 0 has a total capacity of 23.65 GiB of which 1.37 GiB is free. Process 7 has 1.2 GiB in use.\n"
     "zero3 on 4 x 4090, batch 2",
     {"gpus[3].name": "NVIDIA GeForce RTX 4090", "gpus[3].memory_total_bytes": 25393994137}),
    # the system
    ('  File "/home/ann/run/train.py", line 3, in <module>\nValueError: no', {"host.os": "linux"}),
    ("  File \"/usr/local/lib/python3.11/dist-packages/triton/a.py\", line 3\nValueError: no",
     {"host.os": "linux", "environment.python": "3.11"}),
    ("python 3.14, windows", {"host.os": "windows"}),
    ("I'm using Windows and numpy 2.0.1", {"host.os": "windows"}),
    # torch's build
    ("CUDA SETUP: settings found: CUDA_VERSION=118, Highest Compute Capability: 7.5.",
     {"environment.builds.torch.cuda": "11.8",
      "gpus[0].compute_capability": "7.5"}),
    (">>> torch.version.cuda\n'12.4'",
     {"environment.builds.torch.cuda": "12.4"}),
    ("ROCM used to build PyTorch: 6.2.41133", {"environment.builds.torch.variant": "rocm"}),
    # libraries
    ("cuDNN version: 90100", {"libraries[0].version": "9.1.0"}),
    ("cuDNN version: 8902", {"libraries[0].version": "8.9.2"}),
    # packages
    ("accelerate==1.2.*", {ACCELERATE: None}),
    ("accelerate==1.2.1", {ACCELERATE: "1.2.1"}),
    (CONDA + "python 3.10.14 h955ad1f_1\npytorch 2.3.1 py3.10_cuda12.1_cudnn8.9.2_0 pytorch",
     {"environment.kind": "conda", "environment.python": "3.10.14", "environment.builds.torch.cuda": "12.1",
      "environment.distributions.torch.version": "2.3.1"}),
    # what stands around a line
    ("Wrote:\n  > Package    Version\n  > ---------- -------\n  > accelerate 1.2.1", {ACCELERATE: "1.2.1"}),
    ('\n\n{"title": "Crash", "body": "Packages:\\naccelerate==1.2.1"}', {ACCELERATE: "1.2.1"}),
    # images
    ("container: nvcr.io/nvidia/pytorch:24.07-py3", {"host.container": "nvcr.io/nvidia/pytorch:24.07-py3"}),
    ("docker image: pytorch/pytorch:2.4.0-cuda12.1-cudnn9-devel",
     {"environment.distributions.torch.version": "2.4.0", "environment.builds.torch.cuda": "12.1"}),
    ("docker image: nvidia/cuda:12.2.2-devel-ubuntu22.04",
     {"toolkits[0].version": "12.2", "host.distro": "ubuntu 22.04"}),
    # error lines that tell a setting
    ("RuntimeError: CUDA out of memory occurred when warming up sampler with 512 dummy requests.",
     {"settings.max_num_seqs": "512"}),
    # values
    ("load_in_8bit: true", {"settings.quant": "int8"}),
    ("quantization_bit: 8", {"settings.quant": "int8"}),
    ("quantization_bit: 4", {"settings.quant": "nf4"}),
    ("attn_implementation: kernels-community/flash-attn", {"settings.attn": "flash_attention_2"}),
    ("attn_implementation: <your choice>", {"settings.attn": None}),
    ("cutoff_len: <LEN>", {"settings.seq": None}),
]  # fmt: skip


def told(text: str, file_name: str = "") -> dict[str, object]:
    """Return each fact by its path; settings by their key."""
    data = to_json(parse_text(text, file_name, load_matrix().lexicon))
    said: dict[str, object] = {f"settings.{s['key']}": s["value"] for s in data.pop("settings", [])}

    def walk(value: object, path: str) -> None:
        if isinstance(value, dict) and set(value) <= {"value", "source"}:
            walk(value.get("value"), path)
        elif isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, f"{path}.{key}" if path else key)
        elif isinstance(value, list):
            for place, inner in enumerate(value):
                walk(inner, f"{path}[{place}]")
        else:
            said[path] = value

    walk(data, "")
    return said


@pytest.mark.parametrize(("text", "facts"), EXAMPLES)
def test_a_line_tells(text, facts):
    said = told(text)
    assert {key: said.get(key) for key in facts} == facts


def rows(*texts: object) -> str:
    return "\n".join(json.dumps(text) for text in texts)


def talk(*roles: str) -> dict[str, object]:
    return {"conversations": [{"from": role, "value": "words " * 8} for role in roles]}


def data(text: str) -> dict[str, object]:
    found = told(text, "data.jsonl").items()
    return {key.removeprefix("settings.data."): value for key, value in found if ".data." in key}


def test_conversations_are_judged_by_who_speaks():
    good = data(rows(talk("human", "gpt"), talk("system", "human", "gpt"), talk(*["user", "assistant"] * 4)))
    assert good == {"format": "sharegpt", "rows": "3", "longest": "112", "p99": "112", "median": "40"}
    faults = {"turns", "unanswered", "structure", "empty", "roles"}
    for turns, fault in (
        (talk("gpt", "human"), {"turns": "1"}),
        (talk("human", "gpt", "human"), {"turns": "1"}),
        (talk("human"), {"unanswered": "1"}),
        (talk("human", "narrator"), {"unanswered": "1", "roles": "narrator"}),
        ({"conversations": []}, {"structure": "1"}),
        ({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": " "}]}, {"empty": "1"}),
    ):
        assert {key: value for key, value in data(rows(turns)).items() if key in faults} == fault


def test_rows_of_instructions_are_judged_by_their_answers():
    said = data(rows({"instruction": "q", "output": "a"}, {"instruction": "q", "output": " "}, {"text": "q"}))
    assert (said["format"], said["rows"], said["empty"], said["structure"]) == ("alpaca", "3", "1", "1")


ERROR = b"RuntimeError: CUDA error: no kernel image is available for execution on the device"


@pytest.fixture
def small_window(monkeypatch):
    """What is huge begins at 4 KiB here."""
    for name, size in (("WHOLE", 4096), ("HEAD", 1024), ("TAIL", 1024), ("CHUNK", 1024)):
        monkeypatch.setattr(f"envdoctor.pastes.files.{name}", size)


@pytest.mark.parametrize("place", [20, 60, 300, 500, 900, 990])
@pytest.mark.usefixtures("small_window")
def test_a_huge_log_keeps_its_ends_and_the_errors_between(place):
    steps = [b"step %d loss 0.5" % number for number in range(1000, 2000)]
    log = b"\n".join((b"first line", *steps[:place], ERROR, *steps[place:], b"last line\n"))
    data, left_out = read_window(io.BytesIO(log))
    lines = data.split(b"\n")
    assert lines[0] == b"first line"
    assert lines[-2:] == [b"last line", b""]
    assert lines.count(ERROR) >= 1
    assert [line for line in lines if line in steps][-45:] == steps[-45:]
    assert left_out == len(log) - len(data) > len(log) // 2


@pytest.mark.usefixtures("small_window")
def test_only_of_a_huge_text_it_is_said_that_a_part_was_searched():
    lexicon = load_matrix().lexicon
    notes = parse_text("step 1 loss 0.5\n" * 300, "", lexicon).notes
    assert notes == ("2,766 bytes in the middle were only searched for error lines",)
    assert parse_text("CUDA out of memory", "", lexicon).notes == (REPORTED,)


def test_what_is_empty_is_named(monkeypatch, capsys):
    with pytest.raises(InputError, match=r"^the text: empty$"):
        parse_text(" \n", "", load_matrix().lexicon)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"\n"), isatty=lambda: False))
    assert main(["diagnose", "--from", "-"]) == 2
    assert "<stdin>: empty" in capsys.readouterr().err
