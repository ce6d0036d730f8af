"""Keys of training and serving files: those that the pinned release lacks, has renamed, or never had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from envdoctor.commands import commands
from envdoctor.facts import Setting
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.profile.keys import BASES, KeyFacts, key_facts
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View

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
REFUSES = frozenset({"llamafactory", "ms-swift", "trl", "transformers", "vllm"})
"""Frameworks whose parser stops at an unknown key; the others pass over it in silence."""
CLOSED = frozenset({"llamafactory", "ms-swift", "axolotl", "vllm", "trl"})
"""Frameworks all of whose keys are known here, so that any other is a mistake."""
SECTIONS = frozenset(
    {
        "zero_optimization",
        "offload_optimizer",
        "offload_param",
        "fp16",
        "bf16",
        "fsdp_config",
        "deepspeed_config",
    }
)
"""Sections whose keys are all known; others may hold whatever their reader wants."""
FREE = frozenset({"env", "plugins", "name", "description", "vllm", "trl", "swift", "transformers"})
"""Words that stand before a colon or a command without being a setting."""


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
        if whole and (framework := framework_of([leaf(s) for s in found])):
            yield KeyFile(framework, tuple({s.native_key: s for s in found}.values()))


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
    """Return the last part of a native key as Python spells it, without the prefix that FSDP's have."""
    parent, _, name = (setting.native_key or "").lower().replace("-", "_").rpartition(".")
    return name.removeprefix("fsdp_") if parent.endswith("fsdp_config") else name


def check_keys(view: View) -> Iterable[Finding]:
    """Find keys that are gone from, or unknown to, the release at hand."""
    files = list(key_files(view.facts.settings))
    if not files:
        raise Skip("no settings file is told")
    for file in files:
        yield from _judge_file(view, file)


def _judge_file(view: View, file: KeyFile) -> Iterator[Finding]:
    facts = [
        f for name in (file.framework, *BASES.get(file.framework, ())) if (f := key_facts(view.matrix, name))
    ]
    gone: list[Finding] = []
    unknown: list[tuple[Setting, str]] = []
    for setting in file.settings:
        name = leaf(setting)
        if name in FREE or not facts or _is_variable(setting.native_key or ""):
            continue
        spans = [(f, f.span(name)) for f in facts]
        if not any(span for _, span in spans):
            unknown.append((setting, _suggestion(name, facts, view)))
        elif finding := _judge_versions(view, file.framework, setting, facts):
            gone.append(finding)
    yield from gone
    yield from _unknown_keys(file.framework, unknown)


def _is_variable(key: str) -> bool:
    """True for an environment variable, bare or in a section of them."""
    return key.isupper() or key.lower().startswith("env.")


def _version(view: View, name: str) -> str | None:
    version = view.version(name)
    return str(version) if version else None


def _judge_versions(
    view: View, framework: str, setting: Setting, facts: Iterable[KeyFacts]
) -> Finding | None:
    """A key that some release had: None when the pinned one has it, or no version says otherwise."""
    name = leaf(setting)
    told = [(f, _version(view, f.framework)) for f in facts]
    answers = [f.has(name, version) for f, version in told]
    if any(answers) or None in answers:
        return _outdated(view, framework, setting, told) if any(answers) else None
    owner, version = next((f, v) for f, v in told if f.span(name))
    if version is None and owner.framework != framework:
        return None  # frameworks hold what they inherit from back to older releases
    return _gone(view, owner, version, setting)


def _gone(view: View, owner: KeyFacts, version: str | None, setting: Setting) -> Finding | None:
    name = leaf(setting)
    span = owner.span(name)
    if span is None:
        return None
    first, after = span
    row = _renamed(view, owner.framework, name)
    shown = f"{owner.framework} {version}" if version else f"the newest {owner.framework}"
    when = f"it went with {after}" if after else f"it came with {first}"
    instead = f": use {row.to}" if row and row.to else ""
    note = f" ({row.note})" if row and row.note else ""
    return Finding(
        id="SETTING-KEY-GONE",
        severity=Severity.ERROR if version else Severity.WARNING,
        summary=f"{shown} has no key {setting.native_key}{instead}{note}; {when}",
        cause=f"{name} is declared by {owner.framework} from {first} to before {after or 'now'}.",
        evidence=(Evidence(setting.native_key or name, setting.value, setting.source),),
        remedies=tuple(_key_remedies(owner, name, row, span, version)),
        certainty=Certainty.CERTAIN if version else Certainty.LIKELY,
        rows=(row.id,) if row else (),
        sources=(row.source if row else f"wheel:{owner.framework}",),
    )


def _key_remedies(
    owner: KeyFacts,
    name: str,
    row: tables.RenamedRow | None,
    span: tuple[str, str | None],
    version: str | None,
) -> Iterator[Remedy]:
    if row and row.to:
        yield Remedy(f"Rename {name} to {row.to}.", commands("{}: …", row.to))
    elif row:
        yield Remedy(f"Remove {name}{': ' + row.note if row.note else ''}.")
    first, after = span
    if version:
        specifier = f">={first},<{after}" if after else f">={first}"
        yield Remedy(f"Or use a {owner.framework} that has it.", pins={owner.framework: specifier})


def _outdated(
    view: View, framework: str, setting: Setting, told: Iterable[tuple[KeyFacts, str | None]]
) -> Finding | None:
    """A key that still works but warns that it will go."""
    from envdoctor.rules.ranges import version_satisfies

    name = leaf(setting)
    for facts, version in told:
        row = _renamed(view, facts.framework, name)
        installed = view.version(facts.framework)
        if row is None or row.deprecated is None or installed is None or version is None:
            continue
        if version_satisfies(installed, f">={row.deprecated}"):
            return Finding(
                id="SETTING-KEY-DEPRECATED",
                severity=Severity.NOTE,
                summary=f"{name} is now {row.to} in {facts.framework} {version}; {row.note}",
                cause=f"{facts.framework} {row.deprecated} took up the new name and warns of the old one.",
                evidence=(Evidence(setting.native_key or name, setting.value, setting.source),),
                remedies=(Remedy(f"Rename {name} to {row.to}.", commands("{}: {}", row.to, setting.value)),),
                rows=(row.id,),
                sources=(row.source,),
            )
    return None


def _renamed(view: View, framework: str, name: str) -> tables.RenamedRow | None:
    rows = view.matrix.rows(tables.RenamedRow)
    return next((r for r in rows if r.framework == framework and r.native == name), None)


def _suggestion(name: str, facts: Iterable[KeyFacts], view: View) -> str:
    """Return the key of the release at hand that is spelt nearest, or nothing."""
    import difflib

    known = {k for f in facts for k in f.fields if f.has(k, _version(view, f.framework)) is not False}
    close = difflib.get_close_matches(name, sorted(known), 1, 0.84)
    return close[0] if close else ""


def _unknown_keys(framework: str, unknown: Iterable[tuple[Setting, str]]) -> Iterator[Finding]:
    for setting, close in unknown:
        parent = (setting.native_key or "").rpartition(".")[0].rpartition(".")[2].lower()
        if (parent and parent not in SECTIONS) or (not close and (framework not in CLOSED or parent)):
            continue
        name = setting.native_key or ""
        refuses = framework in REFUSES and not parent
        hint = f"; {close} is meant?" if close else ""
        yield Finding(
            id="SETTING-KEY-UNKNOWN",
            severity=Severity.ERROR if refuses and close else Severity.WARNING,
            summary=f"no release of {framework} has a key {name}{hint}",
            cause="Its parser stops at unknown keys."
            if refuses
            else "Its parser passes over unknown keys in silence, so the setting has no effect.",
            evidence=(Evidence(name, setting.value, setting.source),),
            remedies=(Remedy(f"Write {close}." if close else f"Remove {name}."),),
            certainty=Certainty.CERTAIN if close else Certainty.LIKELY,
            sources=(f"wheel:{framework}",),
        )


RULES = (
    Rule("SETTING-KEY", "keys of settings files exist in the pinned releases", check_keys, "general:fields"),
)
