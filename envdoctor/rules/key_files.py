"""Files of training and serving settings: which framework each is written for, by its keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from envdoctor.facts import Setting
from envdoctor.values import dataclass

SIGNATURES: Mapping[str, frozenset[str]] = {
    name: frozenset(keys.split())
    for name, keys in {
        "llamafactory": """finetuning_type cutoff_len quantization_bit lora_target flash_attn template
            dataset_dir stage do_train enable_liger_kernel overwrite_cache preprocessing_num_workers
            disable_gradient_checkpointing""",
        "ms-swift": """tuner_type train_type quant_bits quant_method attn_impl rlhf_type target_modules
            dataset_num_proc split_dataset_ratio freeze_vit max_length""",
        "axolotl": """base_model sequence_len micro_batch_size sample_packing adapter datasets num_epochs
            val_set_size lora_target_linear pad_to_sequence_len flash_attention sdp_attention""",
        "deepspeed": """stage train_micro_batch_size_per_gpu train_batch_size reduce_bucket_size
            contiguous_gradients overlap_comm allgather_bucket_size zero_optimization""",
        "accelerate": """compute_environment distributed_type num_processes machine_rank num_machines
            mixed_precision main_training_function downcast_bf16 rdzv_backend""",
        "vllm": """gpu_memory_utilization max_model_len tensor_parallel_size max_num_seqs served_model_name
            kv_cache_dtype max_num_batched_tokens""",
        "trl": """use_peft lora_r num_generations max_completion_length dataset_name max_seq_length
            max_length use_vllm vllm_mode packing""",
        "transformers": """per_device_train_batch_size gradient_accumulation_steps num_train_epochs
            eval_strategy lr_scheduler_type save_steps logging_steps evaluation_strategy warmup_ratio""",
    }.items()
}
"""Keys by which a file is known to be a framework's."""


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The settings of one file and the framework that it is written for."""

    framework: str
    settings: tuple[Setting, ...]


def key_files(settings: Iterable[Setting]) -> Iterator[KeyFile]:
    """Yield the files among the settings whose framework their keys give away."""
    by_file: dict[str, list[Setting]] = {}
    for setting in settings:
        if setting.native_key:
            by_file.setdefault(setting.source.rpartition(": ")[0], []).append(setting)
    for found in by_file.values():
        whole = any(setting.key.startswith("other.") for setting in found)
        if whole and (framework := framework_of([leaf(s) for s in found if not _is_handed_on(s)])):
            yield KeyFile(framework, tuple({s.native_key: s for s in found}.values()))


def _is_handed_on(setting: Setting) -> bool:
    """True in a section that is named for another program, to which the file's own hands it on."""
    section, _, key = path_of(setting).partition(".")
    return bool(key) and section in SIGNATURES


def framework_of(keys: Iterable[str]) -> str | None:
    """Return the framework that most of its own keys name; None below two."""
    present = set(keys)
    counts = {name: len(present & marks) for name, marks in SIGNATURES.items()}
    for group in (
        [name for name in counts if name != "transformers"],
        ["transformers"],
    ):  # others inherit its keys
        best = max(group, key=lambda name: counts[name])
        if counts[best] >= 2:
            return best
    return None


def leaf(setting: Setting) -> str:
    """Return the last part of a native key as Python spells it."""
    return path_of(setting).rpartition(".")[2]


def path_of(setting: Setting) -> str:
    """Return a native key with its sections as Python spells them."""
    return (setting.native_key or "").lower().replace("-", "_")
