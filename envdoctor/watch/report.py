"""A recording as a document: how it ended, its curves in digits, what was said when, the findings."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise

from envdoctor.findings import Diagnosis
from envdoctor.processes import signal_name
from envdoctor.report import PLAIN, Format, Look, Reported, told
from envdoctor.report.diagnosis import finding_blocks, foot
from envdoctor.report.document import Block, Code, Document, Row, Rows, Section, Table, Tone
from envdoctor.watch.death import Story
from envdoctor.watch.moment import Link, Moment, Stack, Stacks, to_json
from envdoctor.watch.stacks import in_words
from envdoctor.watch.stepping import Step
from envdoctor.watch.words import amount, duration

COLUMNS = 60
_PHASES = {
    "loading": "l",
    "training": "t",
    "evaluation": "e",
    "saving": "s",
    "generating": "g",
    "serving": "v",
}


def render(
    story: Story,
    diagnosis: Diagnosis | None = None,
    format: Reported = Format.TEXT,
    look: Look = PLAIN,
    unfold: bool = False,
    step: Step | None = None,
) -> str:
    """Return a recording, with its diagnosis and its next setting where there are, in one of the formats."""
    shown = partial(document, story, diagnosis, unfold, step)
    return told(format, look, shown, partial(_json, story, diagnosis, step))


def _json(story: Story, diagnosis: Diagnosis | None, step: Step | None) -> dict[str, object]:
    return {
        **to_json(story.header),
        "schema": "envdoctor.watch-report/1",
        "moments": len(story.moments),
        "alarms": [to_json(alarm) for alarm in story.alarms],
        "end": asdict(story.end) if story.end else None,
        "next": step.to_json() if step else None,
        "diagnosis": diagnosis.to_json() if diagnosis else None,
        "exit_code": int(story.failed or bool(story.alarms)),
    }


def document(
    story: Story, diagnosis: Diagnosis | None, unfold: bool = False, step: Step | None = None
) -> Document:
    """Return the report."""
    blocks: list[Block] = [Rows(tuple(_rows(story)))]
    if story.moments:
        blocks.append(Section("Curves, from 0 (nothing) to 9 (full)", (Code("\n".join(curves(story))),)))
    if story.alarms:
        said = tuple((duration(a.t), a.kind, a.text) for a in story.alarms)
        blocks.append(Section("Said while it ran", (Table(("after", "", ""), said),)))
    if story.stacks is not None:
        blocks.append(Section("Where its processes stood when it hung", (Code(_stood(story.stacks)),)))
    if diagnosis is not None:
        blocks += finding_blocks(diagnosis.findings, unfold)
    if step is not None:
        blocks.append(Section(f"The next setting: {step.summary}", (Code(step.diff, "diff"),)))
    tone: Tone = "error" if story.failed else "warning" if story.alarms else "ok"
    return Document(how_it_ended(story), tone, tuple(blocks), foot(diagnosis) if diagnosis else "")


def _stood(stacks: Stacks) -> str:
    lines = [line for stack in stacks.ranks for line in (in_words(stack), *_frames(stack))]
    return "\n".join([*lines, *stacks.notes])


def _frames(stack: Stack) -> list[str]:
    return [f"  {told}" for told in stack.frames or (stack.why,)]


def how_it_ended(story: Story) -> str:
    """Return the end in a line."""
    last = story.moments[-1] if story.moments else None
    steps = f" at step {last.step}{f' of {last.of}' if last.of else ''}" if last and last.step else ""
    if story.end is None:
        return f"no end was recorded{steps}: the watch was killed, or goes on"
    if story.end.signal is not None:
        return f"ended by {signal_name(-story.end.signal)} after {duration(story.end.t)}{steps}"
    return f"ended with exit code {story.end.code} after {duration(story.end.t)}{steps}"


def _rows(story: Story) -> list[Row]:
    header = story.header
    rows = [Row("command", shlex.join(header.argv)), Row("started", f"{header.started} on {header.host}")]
    rows += [Row("card", f"GPU {i}: {name}") for i, name in enumerate(header.cards)]
    if header.rank is not None:
        rows.append(Row("rank", str(header.rank)))
    rows += [Row("not read", text) for text in header.unread]
    host = max((m.host or 0 for m in story.moments), default=0)
    if host:
        rows.append(Row("host", f"at most {amount(host)}", header.bound))
    for index in range(max((len(m.cards) for m in story.moments), default=0)):
        held = [m.cards[index] for m in story.moments if index < len(m.cards)]
        top = max(held, key=lambda card: card.top)
        expected = story.expected
        told = f"; {amount(expected.longest)} predicted for {expected.what}" if expected else ""
        rows.append(Row(f"GPU {index}", f"at most {amount(top.top)} of {amount(top.total)}{told}"))
    links = {link.card: link for moment in story.moments for link in moment.links}
    rows += [Row(f"GPU {i} links", told) for i, link in sorted(links.items()) if (told := _linked(link))]
    return rows


def _linked(link: Link) -> str:
    """Return the last reading of a card's links and of its memory's errors; empty where it tells nothing."""
    most = (link.generation_most, link.width_most)
    below = most != (link.generation, link.width) and all(most)
    told = (
        (f"PCIe {link.generation} ×{link.width}", link.generation),
        (f"of {most[0]} ×{most[1]}", below or None),
        (f"{link.replays} replays", link.replays),
        (f"NVLink {link.nvlink_errors} replays or recoveries", link.nvlink_errors),
        (f"ECC {link.ecc_corrected or 0} corrected, {link.ecc_uncorrected} not", link.ecc_uncorrected),
    )
    return ", ".join(text for text, value in told if value is not None)


def curves(story: Story) -> list[str]:
    """Return a line of digits for each quantity, one of phases, one that marks alarms."""
    slots = _slots(story.moments)
    lines = [("phase", "".join(_PHASES.get(slot[-1].phase, ".") for slot in slots))]
    lines.append(("host", _digits(slots, _host_share)))
    for index in range(max(len(m.cards) for m in story.moments)):
        lines.append((f"GPU {index}", _digits(slots, partial(_card_share, index))))
    if story.alarms:
        marks = "".join("!" if any(_within(a.t, slot) for a in story.alarms) else " " for slot in slots)
        lines.append(("said", marks))
    return [f"{label:<6}|{drawn}|" for label, drawn in lines]


def _slots(moments: Sequence[Moment]) -> list[Sequence[Moment]]:
    """Return the moments in at most `COLUMNS` parts of equal count."""
    count = min(COLUMNS, len(moments))
    bounds = [len(moments) * i // count for i in range(count + 1)]
    return [moments[a:b] for a, b in pairwise(bounds)]


def _within(t: float, slot: Sequence[Moment]) -> bool:
    return slot[0].t <= t <= slot[-1].t


def _digits(slots: Sequence[Sequence[Moment]], share: Callable[[Moment], float | None]) -> str:
    drawn = []
    for slot in slots:
        shares = [s for moment in slot if (s := share(moment)) is not None]
        drawn.append(str(min(9, int(max(shares) * 10))) if shares else " ")
    return "".join(drawn)


def _host_share(moment: Moment) -> float | None:
    if moment.host is None or moment.room is None or not moment.host + moment.room:
        return None
    return moment.host / (moment.host + moment.room)


def _card_share(index: int, moment: Moment) -> float | None:
    if index >= len(moment.cards) or not moment.cards[index].total:
        return None
    return moment.cards[index].top / moment.cards[index].total
