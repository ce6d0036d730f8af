"""What small functions of the rules answer, at both sides of what decides them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared import facts_of

from envdoctor.facts import ComputeCapability, ErrorSeen, Frame, Gpu, Host, Observed, Setting
from envdoctor.findings import Certainty
from envdoctor.matrix import load_matrix
from envdoctor.matrix.interface_records import load_record
from envdoctor.pastes import parse_paste
from envdoctor.rules.asked import module_of
from envdoctor.rules.conditions import UNKNOWN, Answer, _judge_capability
from envdoctor.rules.extensions import _could_be
from envdoctor.rules.host import FULL_GIB, SCARCE_GIB, check_disks
from envdoctor.rules.interface_lookup import _whole_module, family_modules
from envdoctor.rules.listing import explained_checks
from envdoctor.rules.occupancy import _held_bytes
from envdoctor.rules.sayings import _values
from envdoctor.rules.serving_fit import _splits
from envdoctor.rules.settings_relations import _is_served
from envdoctor.rules.standard_modules import is_standard
from envdoctor.rules.suspects import _is_passed
from envdoctor.rules.unexplained import is_weak
from envdoctor.rules.view import View

RECORD = None  # each answer is asserted here
MATRIX = load_matrix()


def read(text: str) -> View:
    return View(parse_paste(text, "", MATRIX.lexicon, "log.txt"), MATRIX)


@pytest.mark.parametrize(
    ("heads", "cards", "splits"),
    [(40, 8, [1, 2, 4, 8]), (12, 8, [1, 2, 4]), (7, 4, [1]), (32, 6, [1, 2, 4]), (6, 6, [1, 2])],
)
def test_an_engine_is_split_by_powers_of_two_that_divide_its_heads(
    heads: int, cards: int, splits: list[int]
) -> None:
    assert _splits(heads, cards) == splits


@pytest.mark.parametrize(
    ("total", "free", "held"), [(100, 40, 60), (100, None, 100), (100, 0, 100), (None, None, 0)]
)
def test_what_is_held_of_a_card(total: int | None, free: int | None, held: int) -> None:
    assert _held_bytes(Gpu(0, "nvml", memory_total_bytes=total, memory_free_bytes=free)) == held


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("/env/lib/python3.11/site-packages/trl/trainer/utils.py", "trl.trainer.utils"),
        ("/env/lib/python3.11/site-packages/trl/trainer/__init__.py", "trl.trainer"),
        ("C:\\env\\Lib\\site-packages\\trl\\import_utils.py", "trl.import_utils"),
        ("/home/me/train.py", None),
    ],
)
def test_the_module_of_an_installed_file(file: str, module: str | None) -> None:
    assert module_of(Frame(file, 1, "f", "")) == module


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("Qwen3VLForConditionalGeneration", ["qwen3_vl", "qwen3vl", "qwen3vl_mm", "qwen3_vl_vl"]),
        ("LlamaForCausalLM", ["llama", "llama_mm", "llama_vl"]),
        ("GLM4Config", ["glm4", "glm4_mm", "glm4_vl"]),
    ],
)
def test_the_modules_that_may_hold_an_architecture(name: str, modules: list[str]) -> None:
    assert family_modules(name) == modules


def test_a_module_that_is_whole_stays_and_one_that_is_cut_is_made_whole() -> None:
    record = load_record(MATRIX.folder, "trl")
    assert record is not None
    assert "trl.trainer" in record.names.keys() | record.modules.keys()
    for module in [*list(record.names)[:20], *list(record.modules)[:20]]:
        assert _whole_module(record, module, "SFTTrainer") == module
    owner = next(m for m, names in record.names.items() if m.count(".") == 2 and names)
    name = next(iter(record.names[owner]))
    alike = [m for m, names in record.names.items() if m.startswith(owner[:-1]) and name in names]
    assert _whole_module(record, owner[:-1], name) == (owner if len(alike) == 1 else owner[:-1])


@pytest.mark.parametrize(
    ("capabilities", "answer"),
    [
        (["8.0"], Answer(False)),
        (["8.0", None], UNKNOWN),
        ([None], UNKNOWN),
        ([], UNKNOWN),
    ],
)
def test_a_card_of_unknown_capability_leaves_a_bound_open(
    capabilities: list[str | None], answer: Answer
) -> None:
    gpus = [
        Gpu(n, "nvml", compute_capability=ComputeCapability.parse(told) if told else None)
        for n, told in enumerate(capabilities)
    ]
    view = View(replace(facts_of(), gpus=Observed(tuple(gpus), "nvml")), MATRIX)
    assert _judge_capability(view, ">=9.0") == answer


@pytest.mark.parametrize(
    ("listed", "specifier", "could"),
    [
        ("deepspeed 0.14.0", ">=0.15", False),
        ("deepspeed 0.16.2", ">=0.15", True),
        ("deepspeed>=0.16", "<0.15", False),
        ("numpy 1.26.4", ">=0.15", True),
    ],
)
def test_what_deepspeed_could_be_here(listed: str, specifier: str, could: bool) -> None:
    assert _could_be(read(f"{listed}\nnumpy 2.0.0\n"), specifier) is could


@pytest.mark.parametrize(("left", "scarce"), [(-1, True), (0, False), (1, False)])
@pytest.mark.parametrize("place", ["hf_cache", "tmp"])
def test_a_disk_is_full_below_the_bound_of_its_place(place: str, left: int, scarce: bool) -> None:
    bound = int((SCARCE_GIB if place == "hf_cache" else FULL_GIB) * 2**30)
    facts = replace(facts_of(), host=Host(disk_free_bytes={place: bound + left}))
    assert bool(list(check_disks(View(facts, MATRIX)))) is scarce


@pytest.mark.parametrize(
    ("python", "module", "standard"),
    [
        ("3.10", "tomllib", False),
        ("3.11", "tomllib", True),
        ("3.11", "imp", True),
        ("3.12", "imp", False),
        ("3.11", "distutils", True),
        ("3.12.1", "distutils.core", False),
        ("3.12", "asyncore", False),
        ("3.11.9", "asyncore", True),
        ("3.11", "torch", False),
        ("", "imp", True),
    ],
)
def test_which_python_has_a_module(python: str, module: str, standard: bool) -> None:
    assert is_standard(read(f"Python version: {python}\n" if python else "torch 2.6.0\n"), module) is standard


@pytest.mark.parametrize(
    ("listed", "values"),
    [
        ("['adamw_torch', 'sgd']", ["adamw_torch", "sgd"]),
        ("adamw_torch, sgd", ["adamw_torch", "sgd"]),
        ("eager or sdpa", ["eager", "sdpa"]),
        ("eager and sdpa", ["eager", "sdpa"]),
        ("something else entirely", []),
    ],
)
def test_the_values_of_a_printed_list(listed: str, values: list[str]) -> None:
    assert _values(listed) == values


@pytest.mark.parametrize(
    ("framework", "key", "served"),
    [
        ("vllm", "max_model_len", True),
        ("trl", "vllm_max_model_length", True),
        ("trl", "use_vllm_", False),
        ("trl", "max_length", False),
    ],
)
def test_whose_length_vllm_refuses(framework: str, key: str, served: bool) -> None:
    setting = Setting("max_model_len", "4096", "f", native_key=key, framework=framework)
    assert _is_served(View(facts_of(), MATRIX), setting) is served


@pytest.mark.parametrize(
    ("file", "code", "passed"),
    [
        ("/env/site-packages/torch/nn/modules/module.py", "return self._call_impl(*args, **kwargs)", True),
        (
            "/usr/lib/python3/dist-packages/torch/nn/modules/module.py",
            "return self._call_impl(*args, **kwargs)",
            True,
        ),
        ("/env/site-packages/torch/nn/modules/module.py", "raise ValueError(x)", False),
        ("/usr/lib/python3/dist-packages/torch/nn/modules/module.py", "raise ValueError(x)", False),
        ("/usr/lib/python3.11/contextlib.py", "raise ValueError(x)", True),
    ],
)
def test_frames_that_only_hand_on(file: str, code: str, passed: bool) -> None:
    assert _is_passed(Frame(file, 1, "f", code)) is passed


@pytest.mark.parametrize(
    ("text", "weak"),
    [
        ("UserWarning: the kernel cannot be used", True),
        ("RuntimeError: the kernel cannot be used", False),
    ],
)
def test_a_line_that_a_logger_calls_a_warning_is_no_end(text: str, weak: bool) -> None:
    view = View(facts_of(), MATRIX)
    assert is_weak(view, ErrorSeen(text, "line 1", "line", line=1)) is weak


def test_a_row_is_listed_with_what_it_says() -> None:
    listed = {one["id"]: one for one in explained_checks(MATRIX)}
    row = next(row for row in MATRIX.conditions if row.symptoms and row.when)
    assert listed[row.id] == {
        "id": row.id,
        "kind": "row",
        "title": row.summary,
        "severity": row.severity,
        "cause": row.cause,
        "when": dict(row.when),
        "symptoms": list(row.symptoms),
        "remedies": [one.text for one in row.remedies],
        "source": row.source,
        "checked_on": row.checked_on,
        "basis": row.basis,
    }
    assert {frozenset(one) for one in listed.values() if one["kind"] == "rule"} == {
        frozenset(("id", "kind", "title", "source"))
    }


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("transformers==4.40.0\n", True),
        ("", False),
    ],
)
def test_a_key_that_went_is_certain_where_the_release_is_told(text: str, sure: bool) -> None:
    from envdoctor.diagnosis import diagnose_facts

    config = "per_gpu_train_batch_size: 1\noutput_dir: out\nlearning_rate: 1e-4\nnum_train_epochs: 1\n"
    facts = parse_paste(
        f"{text}```yaml\n{config}evaluation_strategy: steps\n```\n", "", MATRIX.lexicon, "a.md"
    )
    told = [f for f in diagnose_facts(facts, MATRIX).findings if f.id == "SETTING-KEY-GONE"]
    assert all((one.certainty is Certainty.CERTAIN) is sure for one in told)
