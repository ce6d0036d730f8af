"""Each row of lint.toml speaks when its mistake stands in a file, and only then."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from envdoctor.diagnosis import diagnose, diagnose_facts, read_facts
from envdoctor.facts import ComputeCapability, Distribution, Environment, Facts, Gpu, Observed, Setting
from envdoctor.findings import Severity
from envdoctor.matrix import load_matrix
from envdoctor.matrix.tables.conditions import ConditionRow
from envdoctor.rules.rows import check_row
from envdoctor.rules.view import View
from envdoctor.target.cards import declare_gpus

ROWS = [row for row in load_matrix().conditions if row.id.startswith("LINT-")]


def example(text: str) -> str:
    """Return a value that a condition's text accepts."""
    if text.startswith("!"):
        return "7" if text[1:2].isdigit() else "qqq"
    for sign, shift in ((">=", 0), ("<=", 0), (">", 1), ("<", -1)):
        if text.startswith(sign):
            return f"{float(text.removeprefix(sign)) + shift:.6f}".rstrip("0").rstrip(".")
    return text.split("|")[0].replace("*", "") or "x"


def facts_for(row: ConditionRow, extra: tuple[Setting, ...] = ()) -> Facts:
    """Return facts in which all conditions of a row hold."""
    settings, gpu, absent = [], Gpu(0, "declared", name="card"), False
    for key, text in row.when.items():
        if key.startswith("setting."):
            name = key.removeprefix("setting.").replace("*", "")
            settings.append(Setting(name, example(text), "line 1", native_key=name))
        elif key == "gpu.cc":
            gpu = Gpu(0, "declared", name="Tesla T4", compute_capability=ComputeCapability(7, 5))
        elif key == "gpu.memory_gib":
            gpu = Gpu(0, "declared", name="card", memory_total_bytes=24 << 30)
        else:
            assert text == "absent"
            absent = True
    known = {"torch": Distribution("torch", "pip list", version="2.13.0")} if absent else {}
    return Facts(
        gpus=Observed((gpu,), "declared"),
        settings=(*settings, *extra),
        environment=Environment(distributions=known, complete=absent),
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_mistake_is_found_and_explained(row: ConditionRow) -> None:
    finding = check_row(View(facts_for(row), load_matrix()), row)
    assert finding is not None
    assert finding.remedies
    assert "(not told)" not in finding.summary


@pytest.mark.parametrize("row", [row for row in ROWS if row.unless], ids=lambda row: row.id)
def test_the_exception_silences_it(row: ConditionRow) -> None:
    key, text = next(iter(row.unless.items()))
    extra = Setting(key.removeprefix("setting.").replace("*", ""), example(text), "line 2")
    assert check_row(View(facts_for(row, (extra,)), load_matrix()), row) is None


def test_there_are_a_hundred_mistakes_that_parsers_accept() -> None:
    ids = {row.id for row in load_matrix().conditions if any(k.startswith("setting.") for k in row.when)}
    assert len(ids) >= 100


def found_in(name: str, text: str, *gpus: str) -> dict[str, str]:
    """Return the findings of one file, by id."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        matrix = load_matrix()
        facts = declare_gpus(read_facts([str(path)], None, matrix), gpus, matrix)
        return {f.id: f.summary for f in diagnose_facts(facts, matrix).findings}


def test_mistakes_are_found_where_they_stand_in_files() -> None:
    found = found_in(
        "train.yaml",
        "base_model: Qwen/Qwen2.5-7B\nadapter: lora\nsequence_len: 4096\nmicro_batch_size: 0\n"
        "optimizer: nope\nlora_dropout: 1.5\nval_set_size: -1\nlora_r: 8\nnum_epochs: 1\n",
    )
    assert {"SETTING-BATCH-ZERO", "LINT-OPTIM-UNKNOWN", "LINT-LORA-DROPOUT", "LINT-AX-VAL-SET"} <= set(found)


def test_a_ds_config_with_an_old_key_and_no_path_for_nvme() -> None:
    found = found_in(
        "ds_config.json",
        '{\n"zero_optimization": {\n"stage": 3,\n"cpu_offload": true,\n"offload_param": {"device": "nvme"},\n'
        '"overlap_com": true\n},\n"train_batch_size": 8\n}\n',
    )
    assert {"LINT-DS-CPU-OFFLOAD-OLD", "LINT-DS-NVME-PATH", "SETTING-KEY-UNKNOWN"} <= set(found)
    assert "overlap_comm" in found["SETTING-KEY-UNKNOWN"]


def test_keys_are_judged_by_the_pinned_release() -> None:
    text = "model_name_or_path: a/b-7b\nuse_peft: true\nlora_r: 8\nmax_seq_length: 2048\noutput_dir: out\n"
    assert "SETTING-KEY-GONE" in found_in("sft.yaml", text)
    pins = "trl==0.18.2\ntransformers==4.52.4\n"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sft.yaml").write_text(text)
        (Path(folder) / "requirements.txt").write_text(pins)
        matrix = load_matrix()
        facts = read_facts([f"{folder}/sft.yaml", f"{folder}/requirements.txt"], None, matrix)
        assert "SETTING-KEY-GONE" not in {f.id for f in diagnose_facts(facts, matrix).findings}


def test_a_run_that_cannot_fit_names_the_single_change_that_would() -> None:
    text = (
        "model_name_or_path: meta-llama/Llama-2-7b-hf\nstage: sft\ndo_train: true\nfinetuning_type: lora\n"
        "cutoff_len: 4096\nper_device_train_batch_size: 8\ntemplate: llama2\n"
    )
    assert "33" in found_in("train.yaml", text, "RTX 3090")["MEM-RUN"]
    assert "MEM-RUN" not in found_in("train.yaml", text, "A100 80GB")


def test_a_utilisation_has_two_bounds() -> None:
    text = "model: Qwen/Qwen2.5-7B\ngpu-memory-utilization: {}\nmax-model-len: 32768\nmax-num-seqs: 64\n"
    assert "VLLM-BUDGET-LOW" in found_in("vllm.yaml", text.format(0.5), "A10")
    assert "VLLM-BUDGET-HIGH" in found_in("vllm.yaml", text.format(0.99), "RTX A6000")
    assert not {"VLLM-BUDGET-LOW", "VLLM-BUDGET-HIGH"} & set(
        found_in("vllm.yaml", text.format(0.85), "RTX A6000")
    )


@pytest.mark.parametrize(
    ("model", "cards", "found", "does"),
    [
        ("Qwen2.5-32B-Instruct", "4x A100 40GB", "VLLM-BUDGET-SPLIT", "--tensor-parallel-size 4"),
        ("Llama-3.3-70B-Instruct", "4x A100 40GB", "VLLM-BUDGET-NONE", "8 such cards"),
        ("Qwen2.5-14B-Instruct", "2x L4", "VLLM-BUDGET-SPLIT", "--tensor-parallel-size 2"),
        ("Qwen2.5-7B-Instruct", "H100", "VLLM-NO-KV-BLOCKS", "nvidia-smi"),
        ("Qwen2.5-72B-Instruct-AWQ", "4x A100 40GB", "VLLM-BUDGET-SPLIT", "--tensor-parallel-size 2"),
    ],
)
def test_an_engine_without_blocks_is_reckoned_against_its_cards(
    model: str, cards: str, found: str, does: str
) -> None:
    text = f"vllm 0.11.0, {model} on {cards}\nValueError: No available memory for the cache blocks. Try\n"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "log.txt").write_text(text)
        findings = diagnose([f"{folder}/log.txt"]).findings
    assert findings[0].id == found
    assert any(does in line for remedy in findings[0].remedies for line in (remedy.text, *remedy.commands))
    assert "MEM-WEIGHTS" not in {finding.id for finding in findings}  # they were loaded when it gave up


@pytest.mark.parametrize(
    ("identity", "text", "gpus"),
    [
        ("MACHINE-RANK", "distributed_type: NO\nnum_machines: 2\nmachine_rank: 2\nnum_processes: 8\n", ()),
        ("SEQUENCES", "max-num-seqs: 512\nmax-num-batched-tokens: 256\nserved-model-name: x\n", ()),
        ("COMPLETION", "max_completion_length: 8192\nvllm_max_model_length: 4096\nuse_vllm: true\n", ()),
        ("SERVED-RANK", "max-lora-rank: 16\nlora_r: 64\nmax-model-len: 4096\n", ()),
        ("WARMUP", "warmup_steps: 500\nmax_steps: 100\noutput_dir: out\n", ()),
        ("EVAL", "eval_steps: 500\nmax_steps: 100\noutput_dir: out\n", ()),
        ("ALPHA", "lora_alpha: 1024\nlora_r: 8\noutput_dir: out\n", ()),
        ("CARDS", "tensor-parallel-size: 8\nmax-model-len: 4096\n", ("A100 80GB",) * 2),
        (
            "BATCH",
            "train_batch_size: 64\ntrain_micro_batch_size_per_gpu: 4\ngradient_accumulation_steps: 4\n"
            "num_processes: 8\n",
            (),
        ),
        ("POSITIONS", "model: meta-llama/Llama-2-7b-hf\nmax-model-len: 8192\nserved-model-name: x\n", ()),
        ("HEADS", "model: Qwen/Qwen2.5-7B\ntensor-parallel-size: 8\nserved-model-name: x\n", ()),
    ],
)
def test_numbers_that_contradict_each_other(identity: str, text: str, gpus: tuple[str, ...]) -> None:
    assert f"SETTING-RELATION-{identity}" in found_in("settings.yaml", text, *gpus)


@pytest.mark.parametrize(
    ("identity", "name", "text"),
    [
        ("LINT-GRPO-GENERATIONS", "a.sh", "swift rlhf --teacher_model a/b-9b --num_generations 1\n"),
        ("LINT-OPTIM-BNB-OFFLOAD", "a.yaml", "optim: adamw_8bit\ndeepspeed: zero3_cpuoffload_params.json\n"),
        (
            "LINT-PACKING-ATTENTION",
            "a.yaml",
            "axolotl==0.18.0\nsample_packing: true\nattn_implementation: sdpa\n",
        ),
        (
            "VLLM-UTILIZATION-COLOCATED",
            "a.sh",
            "swift rlhf --rlhf_type grpo --vllm_mode colocate --vllm_gpu_memory_utilization 0.7"
            " --sleep_level 1\n",
        ),
        (
            "SETTING-RELATION-POSITIONS",
            "a.yaml",
            "model: meta-llama/Llama-2-7b-hf\nvllm_max_model_len: 8192\nrope_scaling: {type: yarn}\n",
        ),
        ("SETTING-RELATION-COMPLETION", "a.yaml", "max_completion_length: 2048\nvllm_max_model_len: 2048\n"),
    ],
)
def test_what_the_frameworks_do_themselves_is_no_mistake(identity: str, name: str, text: str) -> None:
    assert not is_more_than_a_note(identity, name, text)


def test_training_beyond_the_positions_is_a_mistake_where_they_are_learned() -> None:
    text = "model_name_or_path: {}\nmax_seq_length: 8192\n"
    assert not is_more_than_a_note(POSITIONS, "a.yaml", text.format("meta-llama/Llama-2-7b-hf"))
    assert is_more_than_a_note(POSITIONS, "a.yaml", text.format("gpt2"))


POSITIONS = "SETTING-RELATION-POSITIONS"


def is_more_than_a_note(identity: str, name: str, text: str) -> bool:
    """True when a file with this text gets that finding as a warning or an error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text)
        matrix = load_matrix()
        findings = diagnose_facts(read_facts([str(path)], None, matrix), matrix).findings
    return any(f.id == identity and f.severity is not Severity.NOTE for f in findings)


def test_beside_a_trainer_the_engine_is_given_no_more_than_it_needs() -> None:
    text = (
        "Full training of Qwen2.5-7B on a single H100 80GB dies at its start\n\ntrl==0.18.1\nvllm==0.8.5\n\n"
        "    raise ValueError('No available memory for the cache blocks. ')\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.\n"
        "GRPOConfig(use_vllm=True, vllm_mode='colocate', vllm_gpu_memory_utilization=0.2)\n"
    )
    matrix = load_matrix()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "issue.md").write_text(text)
        facts = read_facts([f"{folder}/issue.md"], None, matrix)
    found = {f.id: f for f in diagnose_facts(facts, matrix).findings}
    assert found["VLLM-BUDGET-LOW"].remedies[0].commands == ("--vllm_gpu_memory_utilization 0.30",)
