"""A model whose weights pass the card is told so before anything is tried."""

from __future__ import annotations

import pytest
from declared import pasted

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Facts, Gpu, Observed, Setting
from envdoctor.findings import Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.rules.fit import parameters_of

GIB = 1 << 30


def judged(gib: int, cards: int = 1, **settings: str) -> dict[str, Finding]:
    gpus = tuple(Gpu(i, "paste", "card", memory_total_bytes=gib * GIB) for i in range(cards))
    told = tuple(Setting(key, value, "line 1", key) for key, value in settings.items())
    known = Facts(gpus=Observed(gpus, "paste"), settings=told)
    return {finding.id: finding for finding in diagnose_facts(known, select=("MEM-WEIGHTS",)).findings}


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("Llama-2-13b-hf", 13),
        ("Qwen2.5-0.5B", 0.5),
        ("Mixtral-8x7B", 46.48),
        ("LLaMA-65B", 65),
        ("gpt2", None),
    ],
)
def test_a_name_tells_the_size(name: str, billions: float | None) -> None:
    found = parameters_of(name)
    assert (None if found is None else round(found / 1e9, 2)) == billions


def test_shards_of_an_engine_and_a_way_of_sharding_in_words_are_counted() -> None:
    served = "docker run tgi --model-id meta-llama/Meta-Llama-3-70B-Instruct --num-shard 2\n2x A100 40GB\n"
    trained = "FSDP full finetune of Llama-2-7b on 4x A10G 24GB\n"
    oom = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB."
    by_text = {f.id: f.summary for text in (served, trained) for f in judged_paste(text + oom)}
    assert "take 65 GiB on each card of 40 GiB" in by_text["MEM-WEIGHTS"]
    assert "about 26 GiB a card" in by_text["MEM-FULL-TRAINING"]


def test_a_card_of_a_short_name_that_something_ran_on_is_a_card() -> None:
    (gpu,) = (
        parse_paste(
            "unsloth Llama-3.1-8B 4bit on T4, max_seq_length 8192", "", load_matrix().lexicon
        ).gpus.get()
        or ()
    )
    assert gpu.name == "T4"


def test_thirteen_billion_unsharded_pass_24_gib_whatever_the_batch() -> None:
    finding = judged(24, 3, zero_stage="2", model="Llama-2-13b", method="lora", batch="1")["MEM-WEIGHTS"]
    assert finding.severity is Severity.ERROR
    assert "4 bit" in finding.remedies[0].text
    assert "ZeRO-3" in finding.remedies[1].text


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "Llama-2-13b", "method": "lora", "zero_stage": "3"},
        {"model": "Llama-2-13b", "method": "qlora", "quant": "nf4"},
        {"model": "Llama-2-13b", "method": "qlora"},
        {"model": "Llama-2-13b", "method": "lora", "parallel": "fsdp"},
        {"model": "Llama-2-7b", "method": "lora"},
        {"model": "Llama-2-70b-AWQ", "tp": "2"},
        {"model": "Llama-2-13b", "method": "lora", "device_map": "balanced"},
        {"model": "Llama-2-13b"},
    ],
)
def test_what_fits_or_is_no_run_is_left_alone(settings: dict[str, str]) -> None:
    assert judged(24, 3, **settings) == {}


def test_who_serves_is_not_told_how_to_train() -> None:
    text = (
        "vLLM 0.8.5 on 2x RTX 4090, model Qwen2.5-32B-Instruct\ntorch.OutOfMemoryError: CUDA out of memory."
    )
    finding = next(f for f in judged_paste(text) if f.id == "MEM-WEIGHTS")
    assert "AWQ" in finding.remedies[0].text
    assert "LLaMA-Factory" not in str(finding)


def judged_paste(text: str) -> tuple[Finding, ...]:
    return diagnose_facts(parse_paste(text, "", load_matrix().lexicon), complete=False).findings


def test_how_cards_share_a_model_is_certain_only_where_it_is_told() -> None:
    run = {"model": "CodeLlama-70b-hf", "method": "full", "quant": ""}
    excerpt = judged(80, 8, model="CodeLlama-70b-hf", method="full")["MEM-WEIGHTS"]
    assert (excerpt.severity, excerpt.certainty.value) == (Severity.WARNING, "likely")
    told = judged(80, 8, zero_stage="2", model="CodeLlama-70b-hf", method="full")["MEM-WEIGHTS"]
    assert (told.severity, told.certainty.value) == (Severity.ERROR, "certain")
    assert "MEM-WEIGHTS" not in judged(80, 8, zero_stage="3", **run)


def test_an_engine_takes_weights_as_they_are_stored() -> None:
    serving = "vllm serve openai/gpt-oss-120b --gpu-memory-utilization 0.9 --max-model-len 2048\nGPU: H200\n"
    assert judged_paste(serving) == ()
    assert "MEM-WEIGHTS" in judged(140, model="openai/gpt-oss-120b", method="full", batch="1")


CARDS = "2x RTX 3090, vllm 0.9.1\n"
SERVED = "vllm serve meta-llama/Llama-3.3-70B-Instruct --max-model-len 8192 "


def answered(text: str) -> list[Finding]:
    return list(diagnose_facts(parse_paste(text, "", load_matrix().lexicon)).findings)


def test_weights_that_vllm_quantises_while_it_loads_are_counted_so() -> None:
    assert not answered(CARDS + SERVED + "--quantization bitsandbytes --tensor-parallel-size 2")
    assert answered(CARDS + SERVED + "--tensor-parallel-size 2")


def test_a_way_of_quantising_that_is_not_known_is_not_counted_as_none() -> None:
    assert not answered(CARDS + SERVED + "--quantization my_own --tensor-parallel-size 2")


def test_only_the_cards_that_are_there_are_offered() -> None:
    [one] = answered("RTX 4090, vllm 0.9.1\nvllm serve Qwen/Qwen3-32B")
    assert "4 such cards" in one.remedies[0].text
    assert not one.remedies[0].commands
    [two] = answered(CARDS + SERVED + "--quantization bitsandbytes")
    assert two.remedies[0].commands == ("--tensor-parallel-size 2",)


def test_weights_that_leave_too_little_of_the_card_are_named_before_the_batch() -> None:
    text = (
        "gpu: 12GB cards\naccelerate launch train.py --model_name_or_path THUDM/chatglm2-6b "
        "--finetuning_type lora --per_device_train_batch_size 2 --fp16\nCUDA out of memory\n"
    )
    first = next(iter(pasted(text).values()))
    assert first.id == "MEM-WEIGHTS"
    assert "11.2 of the card's 12 GiB" in first.summary
    assert "quantization_bit 4" in first.remedies[0].commands[0]
    assert "MEM-WEIGHTS" not in pasted(text.replace("CUDA out of memory", ""))
