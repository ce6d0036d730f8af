"""Features that only some GPUs have (number formats, attention kernels), asked for or refused."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from envdoctor.facts import Gpu, Setting, Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.torch_wheels import generation
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.conditions import judge
from envdoctor.rules.passed import line_of, went_on
from envdoctor.rules.ranges import text_matches
from envdoctor.rules.view import View, cards, explained, quoted, symptoms


def check_feature(identity: str, view: View) -> Iterable[Finding]:
    """A feature asked for by a setting, or refused in an error line, on GPUs that lack it."""
    row = view.matrix.row(tables.HardwareFeatureRow, identity)
    if row is None:
        raise Skip(f"the matrix has no row {identity}")
    seen = symptoms(view, *row.symptoms)
    asked = [setting for key, value in row.asked.items() if (setting := _asked(view, key, value))]
    if not seen and not asked:
        raise Skip(f"nothing asks for {row.feature}")
    lacking, unknown = _lacking(view, row)
    if lacking or (seen and unknown):
        yield _finding(view, row, lacking, asked, seen)


def _asked(view: View, key: str, value: str) -> Setting | None:
    return view.facts.setting(key) if judge(view, f"setting.{key}", value).holds else None


def _lacking(view: View, row: tables.HardwareFeatureRow) -> tuple[list[Gpu], bool]:
    """The GPUs outside a feature's capabilities, and whether that of some GPU is unknown."""
    gpus = view.gpus.get() or ()
    lacking = [gpu for gpu in gpus if gpu.compute_capability and not row.covers(gpu.compute_capability)]
    return lacking, not gpus or any(gpu.compute_capability is None for gpu in gpus)


def asks_too_much(view: View, settings: Iterable[tuple[str, str]]) -> bool:
    """True when settings ask for a feature that every card told lacks."""
    told = [(key.replace("-", "_"), value.lower()) for key, value in settings]
    return any(
        key in row.asked and text_matches(value, row.asked[key]) and _none_has(view, row)
        for row in (view.matrix.rows(tables.HardwareFeatureRow) if told else ())
        for key, value in told
    )


def _none_has(view: View, row: tables.HardwareFeatureRow) -> bool:
    lacking, _ = _lacking(view, row)
    return bool(lacking) and len(lacking) == len(view.gpus.get() or ())


def _finding(
    view: View,
    row: tables.HardwareFeatureRow,
    lacking: list[Gpu],
    asked: list[Setting],
    seen: tuple[Symptom, ...],
) -> Finding:
    first = lacking[0] if lacking else None
    commands = row.commands
    return Finding(
        id=row.id,
        severity=Severity.ERROR if seen or _is_strict(asked) else Severity(row.refused),
        summary=f"{row.feature} needs {_needed(row)}{_shown(view, first)}.",
        cause=row.because,
        evidence=(
            *cards(lacking),
            *(Evidence(s.native_key or s.key, s.value, s.source) for s in asked),
            *quoted(seen),
        ),
        remedies=tuple(Remedy(text, tuple(commands[i : i + 1])) for i, text in enumerate(row.remedies)),
        certainty=Certainty.CERTAIN if first else Certainty.LIKELY,
        rows=(row.id,),
        sources=(row.source,),
        explains=(*explained(seen), *_consequences(view, row, seen)),
        prior=0.95,
    )


def _consequences(view: View, row: tables.HardwareFeatureRow, seen: tuple[Symptom, ...]) -> tuple[str, ...]:
    """Error lines that follow where software falls back silently (eager attention and memory, say)."""
    if seen and went_on(view, row.id, max(line_of(one.source) for one in seen)):
        return ()
    return explained(symptoms(view, *row.leads_to))


def _needed(row: tables.HardwareFeatureRow) -> str:
    return f"compute capability {row.capability}" + (
        f" and less than {row.below}" if row.below else " or higher"
    )


def _shown(view: View, gpu: Gpu | None) -> str:
    if gpu is None or gpu.compute_capability is None:
        return ", and this GPU was refused"
    capability = gpu.compute_capability
    return (
        f"; {gpu.name or 'this GPU'} is {generation(view.matrix, capability)}, {capability} ({capability.sm})"
    )


def _is_strict(asked: list[Setting]) -> bool:
    """vLLM stops at a dtype that training frameworks emulate."""
    return any(setting.framework == "vllm" and setting.key in ("dtype", "bf16") for setting in asked)


RULES = tuple(
    Rule(identity, title, partial(check_feature, identity))
    for identity, title in {
        "DTYPE-BF16": "bf16 is asked for only where the GPUs compute in it",
        "DTYPE-TF32": "tf32 is asked for only where the GPUs have it",
        "DTYPE-FP8": "fp8 is asked for only where the GPUs have it",
        "DTYPE-FP8-FBGEMM": "fbgemm's fp8 is asked for only on Hopper and newer",
        "DTYPE-FP4": "nvfp4 is asked for only on Blackwell",
        "DTYPE-MXFP4": "mxfp4 is asked for only where its kernels run",
        "FLASH-ATTN-CC": "FlashAttention-2 is used on Ampere and newer",
        "FLASH-ATTN-3-CC": "FlashAttention-3 is used on Hopper",
    }.items()
)
