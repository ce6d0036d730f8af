"""The analytic tier to the byte: whoever changes a term sees which runs it changes, and by how much.

`exact_bytes.tsv` is the record: a measured point and what the run changes of it, or a model of the catalogue
that is served; the bytes of each phase and of each part. Whether the bytes are right is for
`test_measured_points.py` to say; after a term was mended, `python tests/memory/test_exact_bytes.py` writes
the record anew, and its diff is read.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from measured_points import read_points

from envdoctor.errors import EnvdoctorError
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import Constants, ServingRun, parse_shape, predict, read_constants
from envdoctor.memory.run import TrainingRun

RECORD = Path(__file__).with_name("exact_bytes.tsv")
SHARES = 12
POINTS = Path(__file__).parent / "points"
GIB = 1 << 30
CHANGES = {
    "method": ("full", "lora", "qlora"),
    "quant": ("nf4", "int8"),
    "double_quant": (True, False),
    "upcast_kbit": (True, False),
    "adapter_fp32": (True, False),
    "lora_rank": (1, 16, 200),
    "lora_dropout": (0.0, 0.05),
    "lora_targets": ("all", "attn", "qv", "up_proj,o_proj"),
    "dtype": ("bf16", "fp16", "fp32"),
    "amp": ("bf16", "fp16", "none"),
    "attn": ("sdpa", "eager", "flash_attention_2"),
    "liger": (True, False),
    "grad_ckpt": (True, False),
    "reentrant": (True, False),
    "packing": (True, False),
    "batch": (1, 3, 8),
    "seq": (64, 777, 4096),
    "grad_accum": (1, 4),
    "optim": ("adamw_torch", "adamw_8bit", "paged_adamw_8bit", "adafactor", "sgd", "lion_32bit"),
    "gpus": (1, 2, 8),
    "parallel": ("none", "ddp", "zero1", "zero2", "zero3", "fsdp"),
    "offload_optimizer": (True, False),
    "offload_params": (True, False),
    "tp": (1, 2),
    "max_completion": (None, 100),
}


SERVED = {
    "utilization": (0.5, 0.9, 1.0),
    "dtype": ("bf16", "fp32"),
    "max_model_len": (None, 777, 32768),
    "max_num_seqs": (None, 16),
    "max_batched_tokens": (None, 1000),
    "tp": (1, 2, 8),
    "pp": (1, 2),
    "cuda_graphs": (True, False),
    "beside_bytes": (0, 1 << 30),
    "card": ("", "H100", "A100"),
}


def served() -> Iterator[tuple[str, ServingRun]]:
    """Yield an engine for about each third model of the catalogue; its name alone decides which."""
    for row in load_matrix().rows(tables.ModelRow):
        random_ = random.Random(row.name)
        if random_.random() > 0.3:
            continue
        chosen = {name: random_.choice(values) for name, values in SERVED.items()}
        shape = parse_shape(row.config, row.name)
        chosen["tp"] = chosen["tp"] if shape.heads % chosen["tp"] == 0 else 1
        run = ServingRun(shape, 80 * GIB, **chosen)
        yield f"{row.name} {' '.join(f'{k}={v}' for k, v in chosen.items())}", run


def drawn() -> Iterator[tuple[str, TrainingRun]]:
    """Yield runs near the measured ones (`unseen.json` left out), by the point's name and what is changed."""
    for file in sorted(POINTS.glob("[!u]*.json")):
        for point in read_points(file):
            random_ = random.Random(point.id)
            for _ in range(2):
                fields = random_.sample(sorted(CHANGES), random_.randint(1, 4))
                changes = {name: random_.choice(CHANGES[name]) for name in fields}
                try:
                    run = replace(point.run, **changes)
                except EnvdoctorError:
                    continue
                yield f"{point.id} {' '.join(f'{k}={v}' for k, v in sorted(changes.items()))}", run


def told(run: TrainingRun | ServingRun, constants: Constants) -> str:
    """Return the bytes of the prediction, or why there is none."""
    try:
        said = predict(run, constants, close=False)
    except EnvdoctorError as error:
        return f"{error}".splitlines()[0]
    parts = {"reserved": said.peak_reserved_bytes, "device": said.device_bytes, **said.phases}
    parts |= {component.name: component.bytes for component in (*said.components, *said.outside)}
    return "; ".join(f"{name} {size}" for name, size in parts.items())


RUNS = (*drawn(), *served())


def line(place: int) -> str:
    """Return a line of the record as it would be written today."""
    name, run = RUNS[place]
    return f"{name}\t{told(run, read_constants(load_matrix().rows(tables.MemoryRow), {}, (9, 0)))}"


@pytest.mark.parametrize("share", range(SHARES))
def test_each_run_of_the_record_takes_the_bytes_that_it_took(share: int) -> None:
    recorded = RECORD.read_text().splitlines()
    assert len(recorded) == len(RUNS)
    told = {place: line(place) for place in range(share, len(RUNS), SHARES)}
    assert [said for place, said in told.items() if said != recorded[place]] == []


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line(place)}\n" for place in range(len(RUNS))))
