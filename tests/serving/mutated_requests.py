"""Requests to the server, right ones and what a confused or hostile assistant makes of them."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

TARGET = {"gpus": ["T4"], "driver": "580.82", "python_version": "3.12", "platform": "x86_64-manylinux_2_35"}
PASTE = "GPU: Tesla T4\ntrl==0.7.11\ntransformers==4.40.1\ntorch==2.1.0\nbf16: true\n"
RIGHT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("diagnose", {"text": PASTE}),
    ("diagnose", {"text": PASTE, "gpus": ["RTX 4090"], "file_name": "train.yaml"}),
    ("diagnose", {"environment": "."}),
    ("why_not", {"requests": ["flash-attn==2.8.3"], **TARGET}),
    ("pin", {"requests": ["torch", "transformers>=4.40"], "least_change": True, **TARGET}),
    ("memory", {"model": "qwen2.5-0.5b", "method": "lora", "gpu": "T4", "stack": "torch=2.9.1", "batch": 2}),
    ("memory", {"model": "llama-3.1-8b", "task": "serve", "gpu": "RTX 4090", "stack": "vllm=0.11.0"}),
    ("profile", {"model": "qwen2.5-0.5b", "gpus": ["T4"], "stack": "torch=2.9.1", "seq": 512}),
    ("explain", {"id": "PAIR-TRL-BELOW-0.8"}),
)
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1 << 70, 1e308, 0.5, "", " ", "\x00", "\x1b]0;x\x07", "\u202e", "é" * 50),
    *("a" * 5000, "../../etc/passwd", "/etc/passwd", "/proc/self/mem", "-r x", "$(touch pwned)", "`id`"),
    *(
        "file:///etc/passwd",
        "x @ file:///etc/passwd",
        "x @ git+ssh://h/x",
        "torch==",
        "torch>=2,<1",
        "[" * 900,
    ),
    *(
        "nobody/nothing",
        "https://example.com/x",
        "sm_89",
        "RTX 4090",
        "2.1",
        "lora",
        "null",
        "%s%n",
        "{0.__class__}",
    ),
    *([], [[]], [None], ["torch"] * 40, {}, {"a": {"b": {}}}, ["torch", 1], ["\x00"], [""]),
)


def mutated(count: int, seed: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield requests of which one to three parts are not what they should be; the same for a seed."""
    chance = random.Random(seed)
    for _ in range(count):
        name, arguments = copy.deepcopy(chance.choice(RIGHT))
        for _ in range(chance.randint(1, 3)):
            name = _mutate(chance, name, arguments)
        yield name, arguments


def _mutate(chance: random.Random, name: str, arguments: dict[str, Any]) -> str:
    key = chance.choice([*arguments, "extra"])
    match chance.randrange(7):
        case 0:
            arguments.pop(key, None)
        case 1 | 2:
            arguments[key] = chance.choice(ODD)
        case 3 if isinstance(arguments.get(key), str):
            arguments[key] = _broken(chance, arguments[key])
        case 4 if isinstance(arguments.get(key), list) and arguments[key]:
            arguments[key][chance.randrange(len(arguments[key]))] = chance.choice(ODD)
        case 5:
            other, theirs = chance.choice(RIGHT)
            arguments.update(copy.deepcopy(theirs))
            return chance.choice((name, other))
        case 6:
            return chance.choice((name, name, name, *dict(RIGHT), "", "no_such_tool", name.upper()))
    return name


def _broken(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    odd = chance.choice([odd for odd in ODD if isinstance(odd, str)])
    return chance.choice((text[:at], text[at:], text[:at] + odd + text[at:], text * 3, text.upper()))


def broken_lines(count: int, seed: int = 0) -> Iterator[bytes]:
    """Yield lines that no client of the SDK would send."""
    chance = random.Random(seed)
    whole = (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"explain","arguments":{"id":"X"}}}'
    )
    for _ in range(count):
        line = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(line))
            line[at : at + chance.randint(0, 4)] = chance.randbytes(chance.randint(0, 4))
        yield bytes(line).replace(b"\n", b" ") + b"\n"
