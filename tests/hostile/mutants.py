"""Mutants of everything that others send: facts, pastes, logs, configurations, requirements, archives, nodes.

`Room(folder).meet(rng)` makes one mutant, hands it to the code that reads it, and raises for whatever is
neither an answer nor one of our own errors: another exception, a crashed check, a slow one.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import time
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from mutating import mutated_bytes, mutated_json, mutated_text, written
from sent_facts import sent

from envdoctor.bundling import build_bundle
from envdoctor.bundling.archive import pack
from envdoctor.bundling.excerpts import read_excerpt
from envdoctor.bundling.reading import read_bundle
from envdoctor.bundling.redaction import Redactor
from envdoctor.diagnosis import diagnose_facts
from envdoctor.errors import EnvdoctorError
from envdoctor.facts import Facts, FactsFormatError, from_json, to_json
from envdoctor.fetch import Fetched, Fetcher
from envdoctor.findings import Outcome
from envdoctor.fleet import judging
from envdoctor.fleet.assembly import agreement_of, answer
from envdoctor.fleet.baseline import compare, read_baseline
from envdoctor.fleet.merge import Merge
from envdoctor.fleet.report import render as render_fleet
from envdoctor.harvest.index_pages import parse_page
from envdoctor.harvest.remote_archive import RemoteZip
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import TrainingRun, parse_shape, predict
from envdoctor.memory.deepspeed_file import read_deepspeed
from envdoctor.memory.model_config import read_config
from envdoctor.pastes import parse_paste
from envdoctor.report import Format, Gathered, Judged, as_json
from envdoctor.report.rendering import render
from envdoctor.smokes.catalogue import parse_catalogue
from envdoctor.smokes.channel import parse_message
from envdoctor.solve.request_files import read_requests
from envdoctor.solve.requests import parse_requests

TESTS = Path(__file__).parents[1]
SLOWEST_S = 2.0
"""For each begun 100 kB of a mutant."""
Reader = Callable[[], object]
REQUIREMENTS = "torch>=2.4\ntransformers[torch]==4.57.* ; python_version>'3.9'\n-r more.txt\nvllm~=0.9\n"
MANIFESTS = {
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["torch>=2"]\n'
    '[tool.poetry.dependencies]\npython = "^3.10"\nvllm = {version = "^0.9", extras = ["x"]}\n',
    "setup.cfg": "[options]\ninstall_requires =\n  torch>=2\n  vllm[x]~=0.9 ; python_version>'3'\n",
    "setup.py": "from setuptools import setup\nX = ['torch>=2']\nsetup(install_requires=X + ['vllm'])\n",
    "environment.yml": "name: x\ndependencies:\n  - python=3.11\n  - pytorch>=2\n  - pip:\n    - vllm\n",
    "Pipfile": '[packages]\ntorch = ">=2"\nvllm = {git = "https://example.com/v", ref = "main"}\n',
    "Dockerfile": "FROM x\nRUN pip install torch==2.9.0 'vllm>=0.9' && \\\n  uv pip install -r x.txt numpy\n",
    "a.ipynb": '{"cells": [{"cell_type": "code", "source": ["!pip install torch"]}], "metadata": {}}',
}
PAGE = {
    "meta": {"api-version": "1.1"},
    "name": "alpha",
    "files": [
        {
            "filename": "alpha-1.0-py3-none-any.whl",
            "url": "alpha-1.0-py3-none-any.whl",
            "hashes": {"sha256": "0" * 64},
            "requires-python": ">=3.9",
            "yanked": False,
            "upload-time": "2026-01-02T03:04:05.678901Z",
            "size": 1000,
            "core-metadata": {"sha256": "0" * 64},
        }
    ],
}
MODEL = {
    **{"model_type": "deepseek_v3", "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8},
    **{"num_hidden_layers": 4, "intermediate_size": 1024, "vocab_size": 1000, "n_routed_experts": 8},
    **{"num_experts_per_tok": 2, "moe_intermediate_size": 64, "n_shared_experts": 1, "moe_layer_freq": 1},
    **{"first_k_dense_replace": 1, "kv_lora_rank": 64, "q_lora_rank": 64, "qk_rope_head_dim": 16},
    **{"qk_nope_head_dim": 16, "v_head_dim": 16, "head_dim": 64, "partial_rotary_factor": 0.5},
    **{"attention_dropout": 0.0, "hidden_dropout": 0.1, "sliding_window": 128, "hidden_act": "silu"},
    **{"sliding_window_pattern": 6, "layer_types": ["sliding_attention", "full_attention"]},
    **{"mlp_layer_types": ["dense", "sparse"], "rope_parameters": {"partial_rotary_factor": 0.5}},
    **{"max_position_embeddings": 2048, "tie_word_embeddings": False, "final_logit_softcapping": 30.0},
    "vision_config": {"hidden_size": 64, "depth": 2, "mlp_ratio": 4, "patch_size": 14, "mlp_dim": 256},
    "quantization_config": {"quant_method": "gptq", "bits": 4, "format": "float-quantized"},
    "torch_dtype": "bfloat16",
}
TYPES = ("deepseek_v3", "gemma2", "gemma3", "opt", "gpt2", "falcon", "phi", "chatglm", "mixtral", "qwen2")
OPS = {"name": "a", "summary": "b", "tolerance": 0.1, "needs": ["torch"], "quick": True, "lane": "c"}
LISTED = {
    "ops": [{**OPS, "gpus": "one", "last": False, "patience": 1, "missing": ""}],
    "torch": True,
    "troubles": [],
}


class Room:
    """Where mutants are met: what they are made of, and a folder for those that are read as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.matrix = load_matrix()
        machines = (TESTS / "machines").glob("*.json")
        self.facts = [sent(), *(_json(path) for path in sorted(machines) if path.stat().st_size < 15_000)]
        samples = sorted((TESTS / "pastes" / "samples").iterdir())
        self.pastes = {p.name: p.read_text(encoding="utf-8") for p in samples if p.stat().st_size < 15_000}
        self.models = [MODEL, *(dict(row.config) for row in self.matrix.rows(tables.ModelRow)[:40])]
        self.archive = build_bundle(diagnose_facts(from_json(self.facts[1]), self.matrix)).files
        self.accepted = self._accepted()
        self.kinds: dict[str, tuple[int, Callable[[random.Random], Reader]]] = {
            "facts": (80, self._facts),
            "pastes": (50, self._paste),
            "logs": (40, self._log),
            "configs": (130, self._config),
            "deepspeed": (110, self._deepspeed),
            "requirements": (130, self._requirements),
            "manifests": (40, self._manifest),
            "arguments": (80, self._arguments),
            "bundles": (50, self._bundle),
            "shared": (10, self._shared),
            "nodes": (7, self._nodes),
            "baselines": (2, self._baseline),
            "pages": (110, self._page),
            "wheels": (61, self._wheel),
            "children": (100, self._child),
        }

    def meet(self, rng: random.Random, kind: str = "") -> str:
        """Make and read one mutant; return its kind. Raises AssertionError telling what went wrong."""
        names = list(self.kinds)
        kind = kind or rng.choices(names, [self.kinds[name][0] for name in names])[0]
        self.size, self.patience_s = 0, SLOWEST_S
        read = self.kinds[kind][1](rng)
        started = time.process_time()
        with contextlib.suppress(EnvdoctorError):
            try:
                read()
            except (EnvdoctorError, FactsFormatError):
                return kind
            except Exception as error:
                where = traceback.extract_tb(sys.exc_info()[2])[-1]
                raise AssertionError(f"{kind}: {type(error).__name__}: {error} at {where}") from error
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
        return parse_paste(text, "", self.matrix.lexicon, file_name)

    def _judged(self, facts: Facts, rng: random.Random) -> None:
        format = rng.choice(get_args(Judged))
        judged = diagnose_facts(facts, self.matrix, complete=False)
        crashed = [c for c in judged.checks if c.outcome is Outcome.CRASHED and c.rule != "UNREAD"]
        assert not crashed, crashed
        render(judged, format).encode("utf-8")
        assert from_json(json.loads(json.dumps(to_json(facts)))) == facts

    def _facts(self, rng: random.Random) -> Reader:
        text = written(mutated_json(rng.choice(self.facts), rng))
        text = mutated_text(text, rng) if rng.random() < 0.1 else text
        return lambda: self._judged(self._told(text), rng)

    def _paste(self, rng: random.Random) -> Reader:
        name = rng.choice(list(self.pastes))
        text = mutated_text(self.pastes[name], rng)
        return lambda: self._judged(self._told(text, name), rng)

    def _log(self, rng: random.Random) -> Reader:
        path = self._put("train.log", mutated_text(rng.choice(list(self.pastes.values())), rng))
        return lambda: self._told(read_excerpt(path).text())

    def _config(self, rng: random.Random) -> Reader:
        model = rng.choice(self.models) if rng.random() < 0.5 else {**MODEL, "model_type": rng.choice(TYPES)}
        path = self._put("config.json", written(mutated_json(model, rng)))
        return lambda: _predicted(path, rng)

    def _deepspeed(self, rng: random.Random) -> Reader:
        text = self.pastes["ds_config.json"]
        try:
            text = written(mutated_json(json.loads(text), rng))
        except ValueError:
            text = mutated_text(text, rng)
        path = self._put("ds.json", text)
        return lambda: read_deepspeed(str(path), 4096)

    def _requirements(self, rng: random.Random) -> Reader:
        self._put("more.txt", mutated_text("-r requirements.txt\nnumpy<2 \\\n --hash=sha256:0\n", rng))
        path = self._put("requirements.txt", mutated_text(REQUIREMENTS * rng.choice((1, 5)), rng))
        return lambda: read_requests(path)

    def _manifest(self, rng: random.Random) -> Reader:
        name = rng.choice(list(MANIFESTS))
        text = MANIFESTS[name]
        mutant = (
            json.dumps(mutated_json(json.loads(text), rng)) if text[0] == "{" else mutated_text(text, rng)
        )
        path = self._put(name, mutant)
        return lambda: read_requests(path)

    def _arguments(self, rng: random.Random) -> Reader:
        words = [mutated_text(rng.choice(REQUIREMENTS.splitlines()), rng) for _ in range(3)]
        self.size = sum(map(len, words))
        return lambda: [parse_requests([word]) for word in words]

    def _shared(self, rng: random.Random) -> Reader:
        text = written(mutated_json(rng.choice(self.facts), rng))
        self.size = len(text)

        def read() -> None:
            facts = self._told(text)
            build_bundle(
                diagnose_facts(facts, self.matrix, complete=False), redactor=Redactor(keep=("torch", "numpy"))
            )

        return read

    def _bundle(self, rng: random.Random) -> Reader:
        if rng.random() < 0.5:
            name = rng.choice(["facts.json", "MANIFEST.json"])
            value = written(mutated_json(json.loads(self.archive[name]), rng))
            data = pack({**self.archive, name: value.encode("utf-8", "surrogatepass")})
        else:
            data = mutated_bytes(_zipped(self.archive), rng)
        path = self._put("bundle.zip", data)
        return lambda: read_bundle(path)

    def _nodes(self, rng: random.Random) -> Reader:
        good = written(self.facts[1]).encode()
        bad = [written(mutated_json(rng.choice(self.facts), rng)) for _ in range(rng.choice((1, 4)))]
        names = rng.choices(["bad", "n\nx", "n{}", "-", "node[1-3]", "a" * 250, "<b>", '"', "\ud800"], k=4)
        solved = rng.random() < 0.02
        self.size, self.patience_s = sum(map(len, bad)) + len(good), 20.0 if solved else SLOWEST_S
        format = rng.choice(get_args(Gathered))

        def read() -> None:
            merge = Merge()
            merge.add("good", good)
            for name, text in zip(names, bad, strict=False):
                merge.add(name, text.encode("utf-8", "surrogatepass"))
            judging._COMPLETED_GROUPS = 1 if solved else 0  # the solver takes its time
            told = answer(merge, self.matrix)
            assert any("good" in group.nodes for group in told.groups)
            assert not told.crashed_checks, told.crashed_checks
            assert "good" in render_fleet(told, format).encode("utf-8").decode()

        return read

    def _accepted(self) -> Any:
        merge = Merge()
        for number, facts in enumerate(self.facts[:3]):
            merge.add(f"n{number}", written(facts).encode())
        return json.loads(render_fleet(answer(merge, self.matrix), Format.JSON))

    def _baseline(self, rng: random.Random) -> Reader:
        path = self._put("accepted.json", written(mutated_json(self.accepted, rng)))
        merge = Merge()
        merge.add("n0", written(self.facts[0]).encode())

        def read() -> None:
            judging._COMPLETED_GROUPS = 0
            told = answer(merge, self.matrix)
            compared = compare(told, read_baseline(path), agreement_of(self.matrix), "accepted")
            render_fleet(compared, rng.choice(get_args(Gathered)))

        return read

    def _page(self, rng: random.Random) -> Reader:
        text, kind = written(mutated_json(PAGE, rng)), "application/vnd.pypi.simple.v1+json"
        if rng.random() < 0.5:
            file = '<a href="alpha-1.0.tar.gz#sha256=00" data-requires-python="&gt;=3.9">alpha-1.0.tar.gz</a>'
            text, kind = (
                mutated_text(f"<!DOCTYPE html><html><body>{file * 3}</body></html>", rng),
                "text/html",
            )
        body = text.encode("utf-8", "surrogatepass")
        self.size = len(body)
        return lambda: parse_page("alpha", Fetched("http://127.0.0.1/alpha/", body, kind))

    def _wheel(self, rng: random.Random) -> Reader:
        metadata = mutated_text("Name: alpha\nVersion: 1.0\nRequires-Dist: torch>=2\n\nx", rng)
        members = {"alpha-1.0.dist-info/METADATA": metadata.encode("utf-8", "surrogatepass")}
        path = self._put("alpha-1.0-py3-none-any.whl", mutated_bytes(_zipped(members), rng))

        def read() -> None:
            with Fetcher() as fetcher:
                archive = RemoteZip(fetcher, path.as_uri())
                for name in archive.members:
                    archive.read(name)

        return read

    def _child(self, rng: random.Random) -> Reader:
        """What a process in the examined environment answers; it may be anything."""
        text = written(mutated_json(LISTED, rng))
        line = written(mutated_json({"event": "verdict", "op": "a", "outcome": "passed"}, rng)).encode(
            "utf-8", "surrogatepass"
        )

        def read() -> None:
            parse_message(line)
            with contextlib.suppress(ValueError):
                parse_catalogue(json.loads(text))

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
    shape = parse_shape(read_config(path), str(path))
    method = rng.choice(("full", "lora", "qlora"))
    as_json(predict(TrainingRun(shape, method=method, batch=1, seq=512)).peak_reserved_bytes)
