"""Pins in the files of other tools: conda's `environment.yml`, and the `[tool.uv]` tables of a project."""

from __future__ import annotations

import json
from collections.abc import Iterator

from envdoctor.solve.answer import PinSet
from envdoctor.solve.documents import Header, asked_extras
from envdoctor.solve.nodes import TORCH
from envdoctor.solve.reasons import Pin
from envdoctor.solve.variants import INDEX_URL


def environment_text(answer: PinSet, header: Header) -> str:
    """Return an `environment.yml`: conda gives Python and pip, the index all that is pinned."""
    extras = asked_extras(answer)
    pip = [f"--extra-index-url {INDEX_URL}{index}" for index in answer.indexes]
    pip += [_required(pin, extras.get(pin.name, ())) for pin in answer.pins]
    pip += [" ".join(one.text.split()) for one in answer.carried if one.source and not one.judged]
    lines = [
        *header.lines(answer),
        "name: pinned",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python={answer.target.python_minor}",
        "  - pip",
        "  - pip:",
        *(f"      - {json.dumps(line) if _special(line) else line}" for line in pip),
    ]
    return "\n".join(lines) + "\n"


def _special(line: str) -> bool:
    """True where YAML would read more than a text."""
    return any(sign in line for sign in ": #'\"@{}[]&*!|>%`") or line.startswith("-")


def _required(pin: Pin, extras: tuple[str, ...]) -> str:
    chosen = f"[{','.join(extras)}]" if extras else ""
    return f"{pin.name}{chosen}=={pin.label}"


def uv_text(answer: PinSet, header: Header) -> str:
    """Return the tables that make `uv lock` take these pins, each variant from its own index alone."""
    return "\n".join([*header.lines(answer), *_tables(answer)]) + "\n"


def _tables(answer: PinSet) -> Iterator[str]:
    environment = answer.target.marker_environment()
    marker = " and ".join(f"{name} == '{environment[name]}'" for name in ("sys_platform", "platform_machine"))
    yield "[tool.uv]"
    yield f"environments = [{json.dumps(marker)}]"
    yield "constraint-dependencies = ["
    yield from (f"    {json.dumps(f'{pin.name}=={pin.label}')}," for pin in answer.pins)
    yield "]"
    of_variants = [pin for pin in answer.pins if pin.index]
    if of_variants:
        yield ""
        yield "# uv takes a source for what the project itself requires: list these under its dependencies"
        yield "[tool.uv.sources]"
        yield from (f"{pin.name} = {{ index = {json.dumps(f'pytorch-{pin.index}')} }}" for pin in of_variants)
    if built := [pin for pin in answer.pins if pin.built_with]:
        yield ""
        yield "[tool.uv.extra-build-dependencies]"
        yield from (f"{pin.name} = [{', '.join(map(_seen_by_build, pin.built_with or ()))}]" for pin in built)
    for index in answer.indexes:
        yield ""
        yield "[[tool.uv.index]]"
        yield f"name = {json.dumps(f'pytorch-{index}')}"
        yield f"url = {json.dumps(f'{INDEX_URL}{index}')}"
        yield "explicit = true"


def _seen_by_build(need: str) -> str:
    """Return a build's further requirement in uv's words: of torch, that which is installed."""
    return f'{{ requirement = "{need}", match-runtime = true }}' if need == TORCH else json.dumps(need)
