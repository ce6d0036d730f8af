"""The end explained: how it ended, and what the kernel, the cards, the curve and the log tell of that."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace

from envdoctor.diagnosis import diagnose_facts, start_probes
from envdoctor.errors import EnvdoctorError
from envdoctor.facts import Facts
from envdoctor.findings import (
    Certainty,
    Diagnosis,
    Evidence,
    Examined,
    Finding,
    Remedy,
    Severity,
    exit_code,
    order,
)
from envdoctor.matrix import load_matrix
from envdoctor.pastes.merge import merge_facts
from envdoctor.values import dataclass
from envdoctor.watch.engines import is_engine, refuses
from envdoctor.watch.moment import Alarm, End, Expectation, Header, Line, LogLine, Moment, Stacks
from envdoctor.watch.stepping import Step, next_step
from envdoctor.watch.told import told_facts
from envdoctor.watch.words import amount

KERNEL = "https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files"
SIGNALS = "https://man7.org/linux/man-pages/man7/signal.7.html"
TORCH = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"
NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
DCGM = "https://docs.nvidia.com/datacenter/dcgm/latest/reference/error-thresholds.html"
_FULL = 0.96
"""A memory that was so full had nothing left for a larger request."""


@dataclass(frozen=True, slots=True)
class Story:
    """A recording in its parts."""

    header: Header
    moments: tuple[Moment, ...]
    alarms: tuple[Alarm, ...]
    log: tuple[str, ...]
    end: End | None
    expected: Expectation | None = None
    stacks: Stacks | None = None
    """Where the ranks stood when it hung last."""

    @property
    def failed(self) -> bool:
        """True once it has ended, and not well."""
        return self.end is not None and bool(self.end.signal or self.end.code)

    @property
    def last(self) -> Moment | None:
        """The last moment in which something was still held."""
        held = [m for m in self.moments[-5:] if m.host or any(c.used for c in m.cards)]
        return held[-1] if held else (self.moments[-1] if self.moments else None)


def story_of(lines: Sequence[Line]) -> Story:
    """Return the parts of a recording's lines."""
    header = next((line for line in lines if isinstance(line, Header)), Header())
    return Story(
        header,
        tuple(line for line in lines if isinstance(line, Moment)),
        tuple(line for line in lines if isinstance(line, Alarm)),
        tuple(line.text for line in lines if isinstance(line, LogLine)),
        next((line for line in reversed(lines) if isinstance(line, End)), None),
        next((line for line in reversed(lines) if isinstance(line, Expectation)), None),
        next((line for line in reversed(lines) if isinstance(line, Stacks)), None),
    )


def next_setting(story: Story) -> Step | str:
    """Return what to change of a run that a card's memory ended, or why nothing is; "" for another end."""
    if not _words_of_device_oom(story) and not _engine_refuses(story):
        return ""
    growth = _growth(story)
    if growth is not None:
        return f"no smaller setting helps for long: {growth.text}"
    try:
        return next_step(story.header, story.last, story.log)
    except EnvdoctorError as error:
        return f"no next setting: {error}"


def _engine_refuses(story: Story) -> bool:
    return is_engine(story.header) and refuses(told_facts(story.header, log=story.log))


def _growth(story: Story) -> Alarm | None:
    """Return the alarm that told of a growth on a card, step by step or second by second."""
    return next((a for a in story.alarms if a.kind == "OOM-FORETOLD" and a.eta_s is not None), None)


def diagnose_story(story: Story, here: bool = True, step: Step | str = "") -> Diagnosis:
    """Return a run's end as a diagnosis: its own findings, then what its log, settings and machine tell.

    `here`: the machine it ran on is this one, and is examined too; `step`: its next setting.
    """
    matrix = load_matrix()
    facts = _facts(story, here)
    judged = diagnose_facts(facts, matrix, examined=Examined(f"the run: {_command(story.header)}"))
    own = tuple(_findings(story, judged.findings, step))
    findings = order((*own, *(f for f in judged.findings if f.id not in {o.id for o in own})))
    return replace(judged, findings=findings, exit_code=exit_code(findings, judged.checks, Severity.ERROR))


def _facts(story: Story, here: bool) -> Facts:
    told = told_facts(story.header, log=story.log)
    if not here:
        return told
    try:
        return merge_facts([start_probes(None)(), told])
    except EnvdoctorError:
        return told


def _command(header: Header) -> str:
    return shlex.join(header.argv)


def _findings(story: Story, judged: Sequence[Finding], step: Step | str) -> Iterator[Finding]:
    end, last = story.end, story.last
    if end is None or last is None:
        return
    host = _host_oom(story, end, last)
    if host is not None:
        yield host
    device = _device_oom(story, last, judged, step)
    if device is not None:
        yield device
    if end.signal is not None and host is None:
        yield _ended_by_signal(end)
    for alarm in _last_of_each(story.alarms):
        said = [a for a in story.alarms if (a.kind, a.card) == (alarm.kind, alarm.card)]
        yield _alarm_finding(alarm, said, (host or device) is not None)


def _host_oom(story: Story, end: End, last: Moment) -> Finding | None:
    killed = end.signal == signal.SIGKILL or end.code in (137, 247) or any("SIGKILL" in s for s in story.log)
    leak = next((a for a in story.alarms if a.kind == "HOST-LEAK"), None)
    full = last.room is not None and last.host and last.room < (1 - _FULL) * (last.host + last.room)
    if not end.oom_kills and not (killed and (full or leak)):
        return None
    evidence = [
        Evidence("host memory", f"{amount(last.host or 0)}, {amount(last.room or 0)} to be had", _at(last))
    ]
    if end.oom_kills:
        evidence.insert(
            0, Evidence("kills for want of memory", str(end.oom_kills), "memory.events of its group")
        )
    if leak:
        evidence.append(Evidence("growth", leak.text, _when(leak)))
    return Finding(
        id="WATCH-HOST-OOM",
        severity=Severity.ERROR,
        summary=f"the kernel killed it: the host's memory ran out ({story.header.bound or 'its bound'})",
        cause=_sentence(leak.text) if leak else "The run needed more than it may have.",
        evidence=tuple(evidence),
        remedies=(
            Remedy("Fewer loader workers and a smaller prefetch: each holds its own copy of the data."),
            Remedy("Keep no tensor of each step in a list: `.item()` or `.detach()` what is kept."),
            Remedy("With DeepSpeed: no offload to the host where the card has room."),
        ),
        certainty=Certainty.CERTAIN if end.oom_kills else Certainty.LIKELY,
        sources=(KERNEL,),
        prior=0.95,
        explains=("SYM-SIGKILL", "SYM-HOST-KILLED"),
    )  # fmt: skip


def _words_of_device_oom(story: Story) -> list[str]:
    return [line for line in story.log if "out of memory" in line.lower() and "cuda" in line.lower()]


def _device_oom(story: Story, last: Moment, judged: Sequence[Finding], step: Step | str) -> Finding | None:
    said = _words_of_device_oom(story)
    if not said:
        return None
    index, card = max(enumerate(last.cards), key=lambda pair: pair[1].top / pair[1].total, default=(0, None))
    evidence = [Evidence("log", said[-1][:200], "its own words")]
    if card is not None:
        told = f"{amount(card.top)} of {amount(card.total)} at the most since the moment before"
        evidence.append(Evidence(f"GPU {index}", told, _at(last)))
    foretold = [a for a in story.alarms if a.kind in ("OOM-FORETOLD", "NEIGHBOUR", "FRAGMENTATION")]
    foretold.sort(key=lambda alarm: alarm.step is not None)
    evidence += [Evidence("foretold", alarm.text, _when(alarm)) for alarm in foretold[-2:]]
    others = card.others if card is not None else None
    if card is not None and others and others > 0.05 * card.total:
        cause = f"Of GPU {index}, {amount(others)} belonged to other processes."
    elif foretold:
        cause = f"It was foretold: {foretold[-1].text}."
    else:
        cause = f"The largest request of a step ({last.phase or 'training'}) did not fit any more."
    return Finding(
        id="WATCH-DEVICE-OOM",
        severity=Severity.ERROR,
        summary=f"GPU {index}'s memory ran out{_step(last)}",
        cause=cause,
        evidence=tuple(evidence),
        remedies=tuple(_smaller_settings(judged, step, _growth(story) is not None)),
        certainty=Certainty.CERTAIN,
        sources=(TORCH,),
        prior=0.95,
        explains=("SYM-CUDA-OOM", "SYM-OOM-TRIED", "SYM-OOM-CAPACITY", "SYM-OOM-SAID", "SYM-OOM-WORD"),
    )  # fmt: skip


def _smaller_settings(judged: Sequence[Finding], step: Step | str, growth: bool) -> Iterator[Remedy]:
    """The next setting of its own files, then those of a run that was predicted not to fit."""
    if isinstance(step, Step):
        yield Remedy(f"The next setting, as the difference below: {step.summary}.")
    elif step:
        yield Remedy(_sentence(step))
    if growth:
        yield Remedy("Keep no tensor of each step in a list: `.item()` or `.detach().cpu()` what is kept.")
        return
    for finding in judged:
        if finding.id == "MEM-RUN":
            yield from finding.remedies
    if not isinstance(step, Step):
        yield Remedy(
            "Half the rows a micro-batch and twice the accumulation, checkpointing, or shorter rows."
        )


_OWN: dict[int, str] = {
    signal.SIGSEGV: "It touched memory not its own: as a rule a native library of the wrong build.",
    signal.SIGABRT: "It ended itself: a failed assertion or an exception in native code.",
    signal.SIGBUS: "A mapped file or shared memory lost its ground: /dev/shm or a disk that is full.",
    signal.SIGILL: "An instruction that this processor does not have: a build for a newer one.",
    signal.SIGKILL: "Someone sent it; of the kernel's own killer there is no trace in its group.",
}


def _ended_by_signal(end: End) -> Finding:
    number = end.signal or 0
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    cause = _OWN.get(number, "Someone sent it, or the run itself did.")
    if end.text:
        cause = end.text
    return Finding(
        id="WATCH-SIGNAL",
        severity=Severity.ERROR,
        summary=f"it was ended by {name}",
        cause=cause,
        evidence=(Evidence("end", f"{name} after {end.t:.0f} s", "the kernel's word to its parent"),),
        certainty=Certainty.LIKELY if number in _OWN or end.text else Certainty.UNCERTAIN,
        sources=(SIGNALS,),
        prior=0.4,
        fallback=True,
    )


_WORDS = {
    "HOST-LEAK": ("host memory grew without end", TORCH, "Look for lists that keep tensors, and at loaders."),
    "OOM-FORETOLD": ("memory was seen to run out", TORCH, "`envdoctor profile` chooses what fits."),
    "HANG": (
        "it stood still",
        NCCL,
        "Look at the rank that differs; with TORCH_NCCL_DEBUG_INFO_PIPE_FILE set its collectives are read.",
    ),
    "STRAGGLER": ("one card is slower than the others", NCCL, "Cool it, or leave it out."),
    "THROTTLE": (
        "a card was held back",
        "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
        "More cooling or power for that card; its neighbours wait for it.",
    ),
    "NEIGHBOUR": ("another process uses the card", TORCH, "End it, or take another card."),
    "FRAGMENTATION": ("memory is in pieces", TORCH, "PYTORCH_ALLOC_CONF=expandable_segments:True"),
    "NAN": (
        "the loss is no number",
        "https://docs.pytorch.org/docs/stable/amp.html",
        "A lower learning rate, bf16 instead of fp16, clipped gradients; then look at the rows of that step.",
    ),
    "LOSS": (
        "the loss stands still",
        "https://docs.pytorch.org/docs/stable/notes/autograd.html",
        "Look at what is trained (requires_grad), at the learning rate, and at labels that are all -100.",
    ),
    "LINK": (
        "a card's link is not sound or not at its full speed",
        DCGM,
        "Seat the card, its riser or its cable anew; `nvidia-smi -q -d PCIE` and `nvidia-smi nvlink -e`.",
    ),
    "ECC": ("a card's memory had errors", DCGM, "Reset the card; go on from a save before."),
    "DISK": ("the disk is nearly full", SIGNALS, "Fewer checkpoints (save_total_limit), or elsewhere."),
}  # fmt: skip


def _alarm_finding(alarm: Alarm, said: Sequence[Alarm], explained: bool) -> Finding:
    summary, source, remedy = _WORDS[alarm.kind]
    return Finding(
        id=f"WATCH-{alarm.kind}",
        severity=Severity.WARNING,
        summary=summary,
        cause=_sentence(alarm.text),
        evidence=tuple(Evidence("curve", a.text, _when(a)) for a in said[-3:]),
        remedies=(Remedy(remedy),),
        certainty=Certainty.LIKELY,
        sources=(source,),
        prior=0.5 if explained else 0.8,
    )


def _last_of_each(alarms: Sequence[Alarm]) -> list[Alarm]:
    return list({(a.kind, a.card): a for a in alarms if a.kind in _WORDS}.values())


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _step(moment: Moment) -> str:
    return f" at step {moment.step}" if moment.step is not None else ""


def _at(moment: Moment) -> str:
    return f"the recording, {moment.t:.0f} s after the start"


def _when(alarm: Alarm) -> str:
    return f"said {alarm.t:.0f} s after the start"
