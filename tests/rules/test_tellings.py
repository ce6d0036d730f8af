"""Error lines that a person tells in words lead to the answers of those lines, never certain ones."""

from __future__ import annotations

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

TOLD = """
PAD-TOKEN-ABSENT: Asking to pad but the tokenizer has no padding token. gpt2 fine-tuning, batch 4.
CHAT-TEMPLATE-MISSING: I serve a base model with vllm and the chat endpoint says a chat template is missing
DEVICES-MIXED: Trainer with device_map="auto": I get a message that tensors are on cuda:0 and cuda:1.
AMP-FP16-WEIGHTS: We load float16, train with fp16=True; it dies on unscale and FP16 gradients
DTYPE-BF16: Trying to run on a T4 and it complains that bf16 needs sm_80. Where do I change it?
FLASH-ATTN-CC: FlashAttention tells me it only supports Ampere or newer. I have a V100, what can I do?
TRANSFORMERS-ROPE-LLAMA3: Llama-3.1-8B won't load, rope_scaling wants two fields. transformers 4.41.2
NO-GRAD-LOSS: My LoRA run says that element 0 of tensors has no grad_fn, the loss does not require grad
HANG-COLLECTIVE: vLLM gets stuck after loading the weights with tensor_parallel_size=2. With 1 GPU it is fine
MAP-HANGS: datasets.map with num_proc=16 hangs at 0% forever on our server
DATALOADER-HANGS: Training stops for ever as soon as the DataLoader has num_workers above 0: stuck in a worker
GPU-IDLE-IN-TRAINING: GPU utilization is at 10% while training; dataloader_num_workers 0
SLOW-OFFLOADED: Generation is super slow, 0.5 tok/s with a 70b on one card and device_map="auto"
GRAPH-BREAK: torch.compile gives a graph break at every layer of our attention module
OOM-EVALUATION: OOM during evaluation only, memory climbs with each eval step until it dies
DTYPE-BF16: 我用 T4 跑微调, bf16 报错说不支持 bf16, 需要改哪里
"""
"""The finding, and how the line behind it is told."""
BARS = "Map (num_proc=2):   0%|          | 0/1000 [00:00<?, ? examples/s]\n"


def found(text: str) -> dict[str, Finding]:
    matrix = load_matrix()
    facts = parse_paste(text, "", matrix.lexicon, "issue.md")
    return {finding.id: finding for finding in diagnose_facts(facts, matrix).findings}


def test_a_line_told_in_words_is_answered_as_the_line_and_never_certain() -> None:
    for identity, text in (line.split(": ", 1) for line in TOLD.strip().splitlines()):
        findings = found(f"{text}\n")
        assert next(iter(findings)) == identity, text
        assert findings[identity].certainty is not Certainty.CERTAIN, text


def test_a_bar_that_never_moved_shows_workers_that_wait() -> None:
    assert "MAP-HANGS" in found(f"It just stops here, for hours.\n\n{BARS}")
    assert "MAP-HANGS" not in found(
        f"{BARS}Map (num_proc=2): 100%|##| 1000/1000 [00:09<00:00, 9 examples/s]\n"
    )


def test_a_question_about_trouble_is_no_error() -> None:
    finding = found("# Why does FlashAttention fail on a V100 and only support Ampere or newer cards?\n")
    assert finding["FLASH-ATTN-CC"].severity is Severity.WARNING


def test_words_beside_an_error_line_leave_the_answer_to_the_line() -> None:
    text = "The chat template is missing in the tokenizer, I think.\n\nFrobError: rates differ\n"
    assert "CHAT-TEMPLATE-MISSING" not in found(text)


def test_trouble_that_is_over_or_in_code_is_none() -> None:
    for text in (
        "How much do I need for a base model with LoRA on 24 GB? Will it run out of memory?\n",
        "The hang of dataset.map with num_proc was fixed by a reboot, thanks everybody\n",
        "```python\n# a chat template is missing for this tokenizer of the base model\n```\n",
    ):
        assert not {"MAP-HANGS", "CHAT-TEMPLATE-MISSING", "OOM-GENERAL"} & found(text).keys(), text


GONE = {
    "In trl 0.12 the `tokenizer` argument of SFTTrainer was renamed, my script dies.": "==0.11.4",
    "Is max_seq_length gone from SFTConfig? I have trl 0.20.0 and it does not know it.": "==0.19.1",
    "I have transformers 4.51.3 and it complains about evaluation_strategy being unexpected": "==4.50.3",
    "since transformers 5 `load_in_8bit` can't be passed to from_pretrained any more": "==4.57.6",
    "SFTrainer got unexpected keyword model_init_kwargs since trl 0.13.0": "==0.12.2",
}


def test_an_argument_that_words_tell_to_be_gone_is_looked_up_in_the_releases() -> None:
    for text, bound in GONE.items():
        finding = found(f"{text}\n")["INTERFACE-MISSING"]
        assert any(bound in pin for pin in finding.remedies[0].pins.values()) or any(
            bound in pin for pin in finding.remedies[1].pins.values()
        ), text


def test_a_name_of_ones_own_that_was_renamed_is_no_lack() -> None:
    text = "We renamed `max_length` in our own config; training with trl 0.15 runs perfectly well.\n"
    assert "INTERFACE-MISSING" not in found(text)
