"""What was decided, in eight lines at most: for whom, torch, what changes or is held back, how to install."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor.facts.quantities import counted
from envdoctor.solve.answer import PinSet
from envdoctor.solve.nodes import TORCH

NAMED = 4
"""So many packages are named in a line."""
UV, PIP = "uv pip install", "python -m pip install"
BUILD_TOOLS = "setuptools wheel packaging ninja"
"""What a setup that compiles against torch finds in no isolated build."""
WORDS = 12
"""So many requirements are repeated in the command; of more it says what was typed."""


def summary_lines(answer: PinSet, file: str, typed: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what a solved answer decides.

    `file` is where its pins are, nothing where they are not kept; `typed` is how the request was put.
    """
    return tuple(
        line
        for line in (
            _solved_for(answer),
            _torch(answer),
            _changed(answer),
            _held_back(answer),
            _left(answer),
            *_commands(answer, file or "constraints.txt", typed),
        )
        if line
    )


def _solved_for(answer: PinSet) -> str:
    target = answer.target
    cards = ", ".join(str(card) for card in target.judged_cards) or "no GPU declared"
    driver = f", driver {target.driver}" if target.driver else ""
    python = ".".join(str(part) for part in target.python)
    count = counted(len(answer.pins), "package")
    return f"solved: {count} for Python {python} on {target.platform.name}; {cards}{driver}"


def _torch(answer: PinSet) -> str:
    found = next((pin for pin in answer.pins if pin.name == TORCH), None)
    if found is None:
        return ""
    where = f"PyTorch's index {found.index}" if found.index else "the default index"
    held = next((f"; {one}" for one in found.because if one.startswith("not ")), "")
    return f"torch: {found.label} from {where}{held}"


def _changed(answer: PinSet) -> str:
    return _listed("changed", [f"{c.name} {c.old} to {c.new}" for c in answer.changes])


def _held_back(answer: PinSet) -> str:
    """Return what was asked for and is not at its newest, without what would say so of torch again."""
    asked = {word.split("[")[0].split("=")[0].split("<")[0].split(">")[0] for word in answer.asked}
    held = [
        f"{pin.name} {pin.version}"
        for pin in answer.pins
        if pin.name in asked and pin.name != TORCH and any(one.startswith("not ") for one in pin.because)
    ]
    return _listed("older than the newest, with reasons beside each", held)


def _left(answer: PinSet) -> str:
    return _listed("left as it stands, not judged", [one.shown for one in answer.unjudged])


def _listed(what: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{what}: {', '.join(names[:NAMED])}{more}" if names else ""


def _commands(answer: PinSet, file: str, typed: Sequence[str]) -> Iterator[str]:
    words = [f"'{word}'" if set(word) & set("[<>!*;") else word for word in answer.asked]
    if len(words) > WORDS:
        words = [*(typed or ["-r requirements.txt"]), *(f"'{one}'" for one in answer.besides)]
    asked = " ".join([*words, *(pin.name for pin in answer.pins if pin.apart)])
    if not asked:
        return
    strategy = " --index-strategy unsafe-best-match" if answer.indexes else ""
    steps = list(_steps(answer, asked, f"-c {file}"))
    for opening, installer in (("install:", f"{UV}{strategy}"), ("    or: ", PIP)):
        yield f"{opening} {' && '.join(f'{installer} {words}' for words in steps)}"


def _steps(answer: PinSet, asked: str, pinned: str) -> Iterator[str]:
    """Yield what to install in turn: first what builds must see, though it is not what is pinned."""
    built = [pin for pin in answer.pins if pin.built_with]
    seen = dict.fromkeys(need for pin in built for need in pin.built_with or ())
    bound = [f"'{need}'" for need in seen if set(need) & set("<>=!~")]
    if free := [need for need in seen if f"'{need}'" not in bound]:
        yield f"{' '.join(free)} {BUILD_TOOLS} {pinned}"
    if bound:
        yield " ".join((*bound, *(() if free else ("wheel",))))
    if built:
        yield f"--no-build-isolation {' '.join(pin.name for pin in built)} {pinned}"
    yield f"{asked} {pinned}"
