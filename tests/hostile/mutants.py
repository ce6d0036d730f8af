"""Mutants of everything that others send: facts, bundles, pastes, configurations, requirements, nodes.

`Room(folder).meet(rng)` makes one mutant, hands it to the code that reads it, and raises for whatever is
neither an answer nor one of our own errors: another exception, a crashed check, a slow one.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile_json import one_of_each_shape, places, with_key, with_value
from sent_facts import sent

from envdoctor.bundling import build_bundle
from envdoctor.bundling.archive import pack
from envdoctor.bundling.reading import read_bundle
from envdoctor.diagnosis import diagnose_facts
from envdoctor.errors import EnvdoctorError
from envdoctor.facts import Facts, from_json, to_json
from envdoctor.findings import Outcome
from envdoctor.fleet import judging
from envdoctor.fleet.assembly import answer
from envdoctor.fleet.merge import Merge
from envdoctor.fleet.report import FORMATS as FLEET_FORMATS
from envdoctor.fleet.report import render as render_fleet
from envdoctor.matrix import load_matrix
from envdoctor.memory.deepspeed_file import read_deepspeed
from envdoctor.memory.run import TrainingRun
from envdoctor.memory.shape import read_config
from envdoctor.pastes import key_names, parse_paste, symptom_patterns
from envdoctor.report import render
from envdoctor.solve.requests import read_requests

TESTS = Path(__file__).parents[1]
SLOWEST_S = 2.0
"""For each begun 100 kB of a mutant."""
DIAGNOSIS_FORMATS = ("text", "json", "markdown", "html", "sarif", "junit", "github")

RAW = {
    "@NAN@": "NaN",
    "@INF@": "-Infinity",
    "@OVER@": "1e999",
    "@LONG@": "9" * 5000,
    "@HUGE@": "1" + "0" * 4000,
}
"""What stands in a mutant's text in place of these strings, for Python's own JSON never writes it."""
SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**18, 0.5, 1e308, -0.0, *RAW),
    *(
        "",
        " ",
        "0",
        "-1",
        "1e5",
        "٣",
        "²",
        "１２",
        "9" * 5000,
        "NaN",
        "1.2.3",
        "torch",
        "a" * 250,
        "a" * 20_000,
    ),
    *(
        "\x00",
        "\n",
        "\r\n",
        "\u2028",
        "\ud800",
        "\x1b[31m",
        "\u202e",
        "../../x",
        "/dev/zero",
        "-",
        "--",
        "{}",
    ),
    *("x; touch PWNED", "$(touch PWNED)", "<script>", "]]>", "%s", "{0}", "::error::", "```", "|", "&amp;"),
)
CONTAINERS: tuple[Any, ...] = (
    {},
    [],
    [None],
    [[]],
    [{}],
    {"": 1},
    {"number": {}},
    {"value": None},
    ["a", 1, {}],
)


def deep(levels: int, kind: str) -> Any:
    """Nest lists or objects."""
    value: Any = 1
    for _ in range(levels):
        value = [value] if kind == "list" else {"value": value}
    return value


def other_value(rng: random.Random) -> Any:
    """Return a value that hardly any field expects."""
    kind = rng.random()
    if kind < 0.70:
        return rng.choice(SCALARS)
    return (
        rng.choice(CONTAINERS)
        if kind < 0.97
        else deep(rng.choice((5, 30, 200)), rng.choice(("list", "dict")))
    )


def mutated_json(value: Any, rng: random.Random) -> Any:
    """Return JSON with a few places changed, left out, doubled or renamed."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        known = one_of_each_shape(value) if rng.random() < 0.7 else list(places(value))
        at, inner = rng.choice(known)
        if not at:
            continue
        how = rng.random()
        if how < 0.6:
            value = with_value(value, at, other_value(rng))
        elif how < 0.75 and isinstance(at[-1], str):
            value = with_key(value, at, str(rng.choice(SCALARS)))
        elif how < 0.85:
            value = with_value(value, at, [inner, inner] if not isinstance(inner, list) else inner * 3)
        else:
            _, donor = rng.choice(known)
            value = with_value(value, at, donor)
    return value


def written(value: Any) -> str:
    """Return JSON as text, with the numbers that Python would not write."""
    text = json.dumps(value, indent=1)
    for word, number in RAW.items():
        text = text.replace(f'"{word}"', number)
    return text


def mutated_text(text: str, rng: random.Random) -> str:
    """Return a text with parts cut, doubled, moved, or replaced by what no writer would write."""
    for _ in range(rng.choice((1, 2, 4, 12))):
        start = rng.randint(0, len(text))
        end = min(len(text), start + rng.choice((0, 1, 3, 20, 200)))
        part = rng.choice(
            (text[start:end] * 2, "", str(rng.choice(SCALARS)), "".join(reversed(text[start:end])))
        )
        text = text[:start] + part + text[end:]
        if len(text) > 200_000:
            break
    for word, number in RAW.items():
        text = text.replace(word, number)
    return text


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with some flipped, cut or doubled."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        at = rng.randrange(len(changed))
        how = rng.random()
        if how < 0.6:
            changed[at] = rng.randrange(256)
        elif how < 0.8:
            del changed[at : at + rng.choice((1, 4, 100))]
        else:
            changed[at:at] = changed[at : at + rng.choice((1, 4, 100))]
        if not changed:
            return b""
    return bytes(changed)


class Room:
    """Where mutants are met: what they are made of, and a folder for those that are read as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.matrix = load_matrix()
        self.patterns = symptom_patterns(self.matrix.rows("symptom"))
        self.keys = key_names(self.matrix.rows("key"))
        machines = (TESTS / "machines").glob("*.json")
        self.facts = [sent(), *(_json(path) for path in sorted(machines) if path.stat().st_size < 15_000)]
        self.pastes = {
            p.name: p.read_text(encoding="utf-8") for p in sorted((TESTS / "pastes" / "samples").iterdir())
        }
        self.models = [row["config"] for row in self.matrix.rows("model")[:40]]
        self.archive = build_bundle(diagnose_facts(from_json(self.facts[1]), self.matrix)).files
        self.kinds: dict[str, tuple[int, Callable[[random.Random], Callable[[], object]]]] = {
            "facts": (20, self._facts),
            "pastes": (40, self._paste),
            "configs": (10, self._config),
            "deepspeed": (10, self._deepspeed),
            "requirements": (5, self._requirements),
            "bundles": (5, self._bundle),
            "nodes": (10, self._nodes),
        }

    def meet(self, rng: random.Random, kind: str = "") -> str:
        """Make and read one mutant; return its kind. Raises AssertionError telling how to make it again."""
        names = list(self.kinds)
        kind = kind or rng.choices(names, [self.kinds[name][0] for name in names])[0]
        self.size, self.patience_s = 0, SLOWEST_S
        read = self.kinds[kind][1](rng)
        started = time.process_time()
        with contextlib.suppress(EnvdoctorError):
            try:
                read()
            except EnvdoctorError:
                raise
            except Exception as error:
                raise AssertionError(f"{kind}: {type(error).__name__}: {error}") from error
        spent = time.process_time() - started
        assert spent < self.patience_s * (1 + self.size // 100_000), (kind, spent, self.size)
        return kind

    def _put(self, name: str, content: str | bytes) -> Path:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        self.size = len(data)
        path = self.folder / name
        path.write_bytes(data)
        return path

    def _told(self, text: str, file_name: str = "") -> Facts:
        self.size = len(text)
        return parse_paste(text, "", self.patterns, self.keys, file_name=file_name)

    def _judged(self, facts: Facts, rng: random.Random) -> None:
        format = rng.choice(DIAGNOSIS_FORMATS)
        judged = diagnose_facts(facts, self.matrix, complete=False)
        crashed = [
            check for check in judged.checks if check.outcome is Outcome.CRASHED and check.rule != "UNREAD"
        ]
        assert not crashed, crashed
        render(judged, format).encode("utf-8")
        assert from_json(json.loads(json.dumps(to_json(facts)))) == facts

    def _facts(self, rng: random.Random) -> Callable[[], object]:
        text = written(mutated_json(rng.choice(self.facts), rng))
        text = mutated_text(text, rng) if rng.random() < 0.1 else text
        return lambda: self._judged(self._told(text), rng)

    def _paste(self, rng: random.Random) -> Callable[[], object]:
        name = rng.choice(list(self.pastes))
        text = mutated_text(self.pastes[name], rng)
        return lambda: self._judged(self._told(text, name), rng)

    def _config(self, rng: random.Random) -> Callable[[], object]:
        path = self._put("config.json", written(mutated_json(rng.choice(self.models), rng)))
        return lambda: _predicted(path, rng)

    def _deepspeed(self, rng: random.Random) -> Callable[[], object]:
        text = self.pastes["ds_config.json"]
        try:
            text = written(mutated_json(json.loads(text), rng))
        except ValueError:
            text = mutated_text(text, rng)
        path = self._put("ds.json", text)
        return lambda: read_deepspeed(str(path), 4096)

    def _requirements(self, rng: random.Random) -> Callable[[], object]:
        text = "torch>=2.4\ntransformers[torch]==4.57.* ; python_version>'3.9'\n-r more.txt\nvllm~=0.9\n"
        self._put("more.txt", mutated_text("-r requirements.txt\nnumpy<2 \\\n --hash=sha256:0\n", rng))
        path = self._put("requirements.txt", mutated_text(text * rng.choice((1, 5)), rng))
        return lambda: read_requests(path)

    def _bundle(self, rng: random.Random) -> Callable[[], object]:
        if rng.random() < 0.5:
            name = rng.choice(["facts.json", "MANIFEST.json"])
            value = written(mutated_json(json.loads(self.archive[name]), rng))
            data = pack({**self.archive, name: value.encode("utf-8", "surrogatepass")})
        else:
            data = mutated_bytes(_zipped(self.archive), rng)
        path = self._put("bundle.zip", data)
        return lambda: read_bundle(path)

    def _nodes(self, rng: random.Random) -> Callable[[], object]:
        good = written(self.facts[1]).encode()
        bad = [written(mutated_json(rng.choice(self.facts), rng)) for _ in range(rng.choice((1, 4)))]
        names = rng.choices(["bad", "n\nx", "n{}", "-", "node[1-3]", "a" * 250, "<b>", '"', "\ud800"], k=4)
        solved = rng.random() < 0.02
        self.size, self.patience_s = sum(map(len, bad)) + len(good), 20.0 if solved else SLOWEST_S

        def read() -> None:
            merge = Merge()
            merge.add("good", good)
            for name, text in zip(names, bad, strict=False):
                merge.add(name, text.encode("utf-8", "surrogatepass"))
            judging._COMPLETED_GROUPS = 1 if solved else 0  # the solver takes its time
            told = answer(merge, self.matrix)
            assert any("good" in group.nodes for group in told.groups)
            assert not told.crashed_checks, told.crashed_checks
            text = render_fleet(told, rng.choice(FLEET_FORMATS))
            text.encode("utf-8")
            assert "good" in text

        return read


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _predicted(path: Path, rng: random.Random) -> None:
    from envdoctor.memory import predict
    from envdoctor.memory.shape import parse_shape

    shape = parse_shape(read_config(path), str(path))
    method = rng.choice(("full", "lora", "qlora"))
    predict(TrainingRun(shape, method=method, batch=1, seq=512))
