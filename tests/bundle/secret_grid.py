"""Every published rule's secrets in every surrounding: a grid of which tests draw a part and benchmarks more.

The rules are the rows (`secrets.toml`, and gitleaks' in `releases/secret-rules.json`); beside them stand
issuers that no rule names, with values of the shapes that keys have, and passwords as people choose them.
"""

from __future__ import annotations

import base64
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pattern_draws import draw

from envdoctor.matrix import load_matrix, tables

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
_SUFFIXES_WORDS = """
api_key token secret key access_token api_token client_secret auth_token secret_key access_key
password private_key auth_key bearer_token
"""
_SUFFIXES = _SUFFIXES_WORDS.split()
_SHAPES = {
    "hex32": "[0-9a-f]{32}",
    "hex40": "[0-9a-f]{40}",
    "hex64": "[0-9a-f]{64}",
    "lower20": "[a-z0-9]{20}",
    "lower32": "[a-z0-9]{32}",
    "lower40": "[a-z0-9]{40}",
    "mixed22": "[A-Za-z0-9]{22}",
    "mixed32": "[A-Za-z0-9]{32}",
    "mixed64": "[A-Za-z0-9]{64}",
    "url43": "[A-Za-z0-9_-]{43}",
    "base64": "[A-Za-z0-9+/]{43}=",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "upper34": "[0-9A-Z]{34}",
    "number20": "[1-9][0-9]{19}",
    "chosen": "[A-Za-z0-9]{4}[!#$%*+@][A-Z][a-z0-9]{6}[0-9]{2}",
}
_UNFIT = re.compile(r"[\\\s\"'(){}\[\]<>]")


class Rule(NamedTuple):
    """A kind of secret: the names that stand beside it, its pattern, and whether its shape gives it away."""

    kind: str
    names: tuple[str, ...]
    pattern: str
    marked: bool

    def draw(self, r: random.Random) -> tuple[str, str]:
        """Return what the pattern matches, and the part of it that is secret."""
        for _ in range(500):
            whole, value = draw(self.pattern, r)
            if len(value) >= 8 and not _UNFIT.search(whole):
                return whole, value
        raise ValueError(f"{self.kind}: nothing drawn is one word")


class Cell(NamedTuple):
    """One secret in one surrounding; `needle` is how it is written there."""

    kind: str
    context: str
    needle: str
    text: str


@cache
def rules() -> tuple[Rule, ...]:
    matrix = load_matrix()
    published = matrix.generated("secret-rules")
    found = [
        Rule(row.id, (row.kind.split("-")[0],), row.pattern, True)
        for row in matrix.rows(tables.SecretFormatRow)
        if row.id not in ("SECRET-CONDA", "SECRET-SHA-CRYPT")
    ]
    found += [
        Rule(f"gitleaks:{row['id']}", (row["id"].split("-")[0],), row["pattern"], True)
        for row in published["formats"]
    ]
    found += [
        Rule(f"gitleaks:{row['id']}", tuple(row["names"]), row["value"], False) for row in published["named"]
    ]
    r = random.Random(5)
    for shape, pattern in _SHAPES.items():
        found += [Rule(f"{shape}:{i}", (_invented(r),), pattern, False) for i in range(8)]
    return tuple(found)


def _invented(r: random.Random) -> str:
    return "".join(r.choice("bcdfglmnprstvz") + r.choice("aeiou") for _ in range(r.randint(2, 4)))


class Label:
    """The name beside a secret, as it is written in different places."""

    def __init__(self, name: str, suffix: str) -> None:
        vendor = re.sub(r"[^A-Za-z0-9]+", "_", name).lower()
        words = f"{vendor}_{suffix}".split("_")
        pascal = "".join(word.title() for word in words)
        self.forms = {
            "v": vendor,
            "upper": "_".join(words).upper(),
            "lower": "_".join(words),
            "kebab": "-".join(words),
            "pascal": pascal,
            "camel": pascal[0].lower() + pascal[1:],
            "title": " ".join(word.title() for word in words),
            "phrase": " ".join(words),
            "dotted": f"{vendor}.{suffix.replace('_', '-')}",
        }

    def fill(self, template: str, value: str) -> str:
        for name, form in self.forms.items():
            template = template.replace(f"@{name}@", form)
        return template.replace("@value@", value)


@cache
def templates(kind: str) -> dict[str, str]:
    found: dict[str, str] = tomllib.loads((HERE / "surroundings.toml").read_text(encoding="utf-8"))[kind]
    return found


Made = tuple[str, str]


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return ("\n" + indent).join(text[i : i + width] for i in range(0, len(text), width))


def panel(body: str, width: int = 80) -> str:
    """Return `body` in a box as Rich draws it, broken at its sides."""
    inner = width - 4
    lines = [body[i : i + inner] for i in range(0, len(body), inner)]
    middle = "\n".join(f"│ {line:<{inner}} │" for line in lines)
    return f"╭{'─' * (width - 2)}╮\n{middle}\n╰{'─' * (width - 2)}╯"


def _cells(label: str, value: str, bar: str) -> str:
    width = max(10, min(30, len(value) // 2 + 2))
    parts = [value[i : i + width] for i in range(0, len(value), width)]
    rows = ((label if i == 0 else "", part) for i, part in enumerate(parts))
    return "\n".join(f"{bar} {head:<{len(label)}} {bar} {part:<{width}} {bar}" for head, part in rows)


def _cut(text: str, at: int, between: str) -> str:
    return text[:at] + between + text[at:]


def _encoded(plain: str) -> str:
    return base64.b64encode(plain.encode()).decode()


def _made(label: Label, value: str, r: random.Random) -> dict[str, Callable[[], Made]]:
    upper, lower, title = (label.forms[name] for name in ("upper", "lower", "title"))
    assigned, half = f"{upper}={value}", len(upper) + 1 + max(4, len(value) // 2)
    percent = quote(value, safe="")
    envfile = _encoded(f"REGION=eu\n{assigned}\nRANK=0\n")
    in_json = _encoded(json.dumps({"run": 1, lower: value}))
    basic = _encoded(f"user:{value}")
    every = "".join(f"%{byte:02X}" for byte in value.encode())
    width = max(len(value), len(lower)) + 2
    texts = {
        "aligned": f"host      : x\n{lower:<28}: {value}\nlr        : 3",
        "aligned-spaces": f"{title:<40}{value}",
        "aligned-equals": f"  {lower:<36}= {value}",
        "dotted-leaders": f"{lower} {'.' * max(4, 44 - len(lower))} {value}",
        "rich-table": f"┏━━━━┳━━━━┓\n┃ key ┃ value ┃\n┡━━━━╇━━━━┩\n│ {lower:<24} │ {value} │\n└────┴────┘",
        "column": f"{lower:<{width}}region\n{value:<{width}}eu",
        "wrapped-80": _wrapped(
            f"2026-11-20 10:11:12 INFO main {'.' * r.randrange(10, 40)} {assigned} and more", 80
        ),
        "wrapped-token": _cut(assigned, half, "\n") + "\nnext line of the log",
        "wrapped-indent": _cut(assigned, half, "\n      "),
        "wrapped-ranks": "[rank0]: " + _cut(assigned, half, "\n[rank0]: ") + "\n[rank0]: done",
        "wrapped-json": _wrapped(
            json.dumps({"event": "start", "region": "eu-west", lower: value, "lr": 1}), 80
        ),
        "wrapped-slash": f'{lower} = "{_cut(value, len(value) // 2, chr(92) + chr(10))}"',
        "rich-panel": panel(
            f"Configuration loaded from the environment of this job; {assigned} is used for uploads"
        ),
        "rich-cells": _cells(upper, value, "│"),
        "ascii-cells": _cells(lower, value, "|"),
        "ansi-inside": _cut(assigned, half, "\x1b[1m") + "\x1b[0m done",
        "invisible-joint": _cut(assigned, half, "\u200b"),
        "soft-hyphen": _cut(assigned, half, "\u00ad"),
    }
    written = {
        "percent": (f"cb=https%3A%2F%2Fexample.com%3F{lower}%3D{percent}%26x%3D1", percent),
        "percent-form": (f"grant_type=client&{lower}={percent}&scope=a", percent),
        "percent-json": (quote(json.dumps({lower: value})), quote(value)),
        "percent-twice": (
            quote(quote(f"https://example.com?{lower}={value}&x=1", safe=""), safe=""),
            quote(percent, safe=""),
        ),
        "percent-all": (f"{lower}={every}", every),
        "base64-file": (f'user_data = "{envfile}"', envfile[len(envfile) // 3 :].rstrip("=")),
        "base64-json": (f"decoded from {in_json} ok", in_json[len(in_json) // 3 :].rstrip("=")),
        "base64-label": (f"{upper}_B64={_encoded(value)}", _encoded(value).rstrip("=")),
        "base64-manifest": (
            f"kind: Secret\ndata:\n  {upper}: {_encoded(value)}",
            _encoded(value).rstrip("="),
        ),
        "docker-auth": (json.dumps({"auths": {"ghcr.io": {"auth": basic}}}, indent=1), basic),
        "basic": (f"Authorization: Basic {basic}", basic),
        "hexadecimal": (f"{upper}_HEX={value.encode().hex()}", value.encode().hex()),
    }
    made: dict[str, Callable[[], Made]] = {
        name: (lambda text=text: (text, value)) for name, text in texts.items()
    }
    return made | {name: (lambda pair=pair: pair) for name, pair in written.items()}


def contexts(kind: str) -> list[str]:
    """Return the names of the surroundings: `labelled`, `later` (labelled, too) or `bare`."""
    made = {
        "labelled": list(_made(Label("a", "b"), "x" * 20, random.Random(0))),
        "bare": ["wrapped", "panel"],
    }
    return [*templates(kind), *made.get(kind, ())]


def labelled(
    count: int, seed: int = 1, chosen: Sequence[Rule] = (), places: Sequence[str] = ()
) -> Iterator[Cell]:
    """Draw `count` cells in which a label stands beside the secret."""
    r = random.Random(seed)
    chosen, places = chosen or rules(), places or contexts("labelled")
    given = {**templates("labelled"), **templates("later")}
    for _ in range(count):
        rule, context = r.choice(chosen), r.choice(places)
        label, (_, value) = Label(r.choice(rule.names), r.choice(_SUFFIXES)), rule.draw(r)
        if context in given:
            text, needle = label.fill(given[context], value), value
        else:
            text, needle = _made(label, value, r)[context]()
        yield Cell(rule.kind, context, needle, text)


def bare(
    count: int, seed: int = 2, chosen: Sequence[Rule] = (), places: Sequence[str] = ()
) -> Iterator[Cell]:
    """Draw `count` cells in which nothing stands beside a secret whose shape gives it away."""
    r = random.Random(seed)
    marked = [rule for rule in chosen or rules() if rule.marked]
    places = places or contexts("bare")
    for _ in range(count):
        rule, context = r.choice(marked), r.choice(places)
        whole, value = rule.draw(r)
        if context == "wrapped":
            text = _wrapped(f"2026-11-20 10:11:12 INFO main {'x ' * r.randrange(4, 20)}{whole} and more", 80)
        elif context == "panel":
            text = panel(f"The server refused what the job sent it, which was this: {whole} as it says")
        else:
            text = templates("bare")[context].replace("@value@", whole)
        yield Cell(rule.kind, context, value, text)


_PLACEHOLDER = re.compile(r"<[a-z0-9][a-z0-9-]*-[0-9]+>")
_PUBLIC_PART = re.compile(
    r"https?://[^\s]*/(?=[^/]{8,}$)|[A-Za-z0-9_.]{2,12}[_.:=-](?=[A-Za-z0-9+/=_.~-]{10,}$)"
)


def can_be_read(needle: str, shown: str) -> bool:
    """True when eight characters in a row of the secret are left, its issuer's prefix or host aside."""
    shown = _PLACEHOLDER.sub("", shown)
    if public := _PUBLIC_PART.match(needle):
        needle = needle[public.end() :]
    size = 8 if len(needle) > 12 else max(5, len(needle) - 1)
    return any(needle[i : i + size] in shown for i in range(len(needle) - size + 1))


_FIRST_WORDS = """
anna bjorn carlos dmitri elena farid giulia hiroshi ingrid jamal katya liang priya quentin tomasz
yuki
"""
_FIRST = _FIRST_WORDS.split()
_LAST_WORDS = """
schmidt kowalski ivanov tanaka nguyen rossi garcia muller johansson okafor novak haddad weber moreau
"""
_LAST = _LAST_WORDS.split()
_FOREIGN_WORDS = """
иван мария 王伟 田中 김철수 José Jürgen Łukasz Zoë محمد Øystein Françoise
"""
_FOREIGN = _FOREIGN_WORDS.split()
_HEX = "0123456789abcdef"


def _hex(r: random.Random, count: int) -> str:
    return "".join(r.choice(_HEX) for _ in range(count))


def _user(r: random.Random) -> str:
    first, last = r.choice(_FIRST), r.choice(_LAST)
    forms = (
        first + last[0],
        first[0] + last,
        f"{first}.{last}",
        f"{first}_{last}",
        f"{first}{r.randrange(10, 99)}",
        last,
    )
    return r.choice(forms)


def _host(r: random.Random) -> str:
    forms = (
        f"{r.choice(['gpu', 'dgx', 'hpc', 'worker'])}-{r.choice(['node', 'a'])}{r.randrange(1, 99):02d}",
        f"{r.choice(['gpu', 'dgx', 'nid', 'cn', 'hgx', 'node'])}{r.randrange(1, 9999):04d}",
        f"{r.choice(['lambda', 'rtx', 'ml', 'train'])}-{r.choice(_LAST)}-{r.randrange(1, 40)}",
    )
    return r.choice(forms)


_DRAWS: dict[str, Callable[[random.Random], str]] = {
    "user": _user,
    "host": _host,
    "plainhost": lambda r: r.choice(["hydra", "zeus", "athena", "orion", "nautilus", "atlas", "phoenix"]),
    "first": lambda r: r.choice(_FIRST),
    "last": lambda r: r.choice(_LAST),
    "First": lambda r: r.choice(_FIRST).title(),
    "Last": lambda r: r.choice(_LAST).title(),
    "foreign": lambda r: r.choice(_FOREIGN),
    "ip": lambda r: f"10.{r.randrange(256)}.{r.randrange(256)}.{r.randrange(1, 255)}",
    "uuid": lambda r: "-".join(_hex(r, n) for n in (8, 4, 4, 4, 12)),
    "serial": lambda r: r.choice("SP") + "".join(r.choice("0123456789ABCDEF") for _ in range(11)) + "7",
    "account": lambda r: "".join(r.choice("123456789") for _ in range(12)),
    "bucket": lambda r: f"{r.choice(_LAST)}-{r.choice(['llm', 'ml'])}-ckpt-{r.randrange(9)}",
}
_TOKEN = re.compile(r"( {2,})?@([A-Za-z]+)(?:_?([0-9]+))?@( {2,})?")


def _fill(template: str, r: random.Random) -> str:
    """Fill in what is drawn, a word the same throughout; columns keep their width."""
    drawn: dict[str, str] = {}

    def value(name: str, count: str) -> str:
        if name.lower() == "hex":
            return _hex(r, int(count)).upper() if name == "HEX" else _hex(r, int(count))
        if name == "base":
            return base64.b64encode(r.randbytes(int(count))).decode()[: int(count)]
        return drawn.setdefault(name, _DRAWS[name](r))

    def fill(match: re.Match[str]) -> str:
        left, name, count, right = match[1] or "", match[2], match[3] or "", match[4] or ""
        filled = value(name, count)
        if right:
            return left + filled.ljust(len(match[0]) - len(left) - 2) + "  "
        return " " + filled.rjust(len(match[0]) - 1) if left else filled

    return _TOKEN.sub(fill, template.replace("@base64_", "@base_"))


def identities(rounds: int, seed: int = 3) -> Iterator[Cell]:
    """Draw every line that tells who or where, `rounds` times over, each by itself."""
    groups = tomllib.loads((HERE / "identity_lines.toml").read_text(encoding="utf-8"))
    for drawn in range(rounds):
        for kind, lines in groups.items():
            for name, template in lines.items():
                text = _fill(template, random.Random(f"{seed} {drawn} {kind} {name}"))
                before, _, rest = text.partition("«")
                needle, _, after = rest.partition("»")
                yield Cell(kind, name, needle, before + needle + after)
