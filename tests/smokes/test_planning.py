"""What is chosen, which worker runs it, and on which cards."""

from __future__ import annotations

import sys

import pytest

from envdoctor.errors import InputError, Unavailable
from envdoctor.smokes.catalogue import OpEntry, read_catalogue, select_ops
from envdoctor.smokes.ops import load
from envdoctor.smokes.planning import gpu_expected, lanes, requests
from envdoctor.smokes.session import Session, count_names


def entry(name, *, needs=(), quick=True, lane="torch", gpus="each"):
    return OpEntry(name, "", 0.01, needs, quick, lane, gpus, False, 1.0, "")


OPS = (entry("matmul.bf16"), entry("matmul.fp16"), entry("bnb.nf4", quick=False), entry("matmulish"))


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (None, ["matmul.bf16", "matmul.fp16", "matmulish"]),
        (("matmul",), ["matmul.bf16", "matmul.fp16"]),
        (("bnb.*", "matmul.fp16"), ["matmul.fp16", "bnb.nf4"]),
        (("*.?p16",), ["matmul.fp16"]),
        (("all",), ["matmul.bf16", "matmul.fp16", "bnb.nf4", "matmulish"]),
    ],
)
def test_a_selection_means_names_prefixes_and_globs(patterns, names):
    assert [op.name for op in select_ops(OPS, patterns)] == names


def test_a_pattern_that_means_nothing_is_an_error():
    with pytest.raises(InputError, match="--select bnd: no such op"):
        select_ops(OPS, ("matmul", "bnd"))


def test_pairs_are_run_for_each_pair_and_named_by_it():
    (alone, pair, every) = entry("a"), entry("p2p.copy", gpus="pair"), entry("nccl", gpus="all")
    found = requests((alone, pair, every), (0, 1, 2))
    assert [(r.name, r.gpus, r.gpu) for r in found] == [
        *[("a", (card,), card) for card in range(3)],
        *[(f"p2p.copy[{i}-{j}]", (i, j), None) for i, j in ((0, 1), (0, 2), (1, 2))],
        ("nccl", (0, 1, 2), None),
    ]


def test_one_card_has_no_pair_and_says_so():
    (request,) = requests((entry("p2p.copy", gpus="pair"),), (0,))
    assert request.gpus == (0,)


def test_heavy_imports_get_workers_of_their_own():
    ops = [*OPS, entry("bnb.fp4", needs=("bitsandbytes",), lane="bnb"), entry("compile", lane="compile")]
    assert [[op.name for op in lane] for lane in lanes(ops, 2)] == [
        ["bnb.fp4", "compile"],
        ["matmul.bf16", "matmul.fp16", "bnb.nf4", "matmulish"],
    ]
    assert len(lanes(ops, 8)) == 3
    assert lanes([], 8) == []


def test_a_card_that_is_hidden_is_not_expected(tmp_path):
    assert not gpu_expected({}, tmp_path)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidia0").touch()
    assert gpu_expected({}, tmp_path)
    assert not gpu_expected({"CUDA_VISIBLE_DEVICES": ""}, tmp_path)
    assert not gpu_expected({"CUDA_VISIBLE_DEVICES": "-1"}, tmp_path)


def session(device, expected=True):
    return Session(
        "python", {}, device=device, timeout_s=1, start_timeout_s=1, build=False, gpu_expected=expected
    )


def test_a_card_that_torch_does_not_reach_is_a_failure():
    outcome, reason = session(None).learn_devices([], "Torch not compiled with CUDA enabled")
    assert outcome == "failed"
    assert reason.endswith("torch does not reach: Torch not compiled with CUDA enabled")


def test_cards_are_all_or_the_one_chosen():
    every, one = session(None), session("1")
    assert every.learn_devices(["NVIDIA H200", "NVIDIA H200"], None) is None
    assert one.learn_devices(["NVIDIA H200", "Tesla T4"], None) is None
    assert (every.cards, every.device_name) == ((0, 1), "2 x NVIDIA H200")
    assert (one.cards, one.device_name) == ((1,), "Tesla T4")
    assert count_names(["Tesla T4", "NVIDIA H200"]) == "Tesla T4, NVIDIA H200"
    with pytest.raises(InputError, match="--device 1: 1 visible to torch"):
        session("1").learn_devices(["Tesla T4"], None)


def test_every_op_says_what_it_proves():
    ops = load()
    assert all(op.summary.endswith(".") for op in ops.values())
    assert {op.gpus for op in ops.values()} == {"each", "pair", "all"}
    assert all(0 <= op.tolerance <= 0.05 for op in ops.values())


def test_an_interpreter_lists_its_ops_and_those_of_third_parties(faulty):
    catalogue = read_catalogue(faulty, 30)
    names = [op.name for op in catalogue.ops]
    assert names[0] == "device.copy"
    assert "fault.segv" in names
    assert catalogue.has_torch


def test_something_that_is_no_interpreter_is_unavailable():
    with pytest.raises(Unavailable, match="could not list its ops"):
        read_catalogue("/bin/true", 30)


def test_an_entry_point_that_breaks_is_told(tmp_path, monkeypatch):
    (tmp_path / "broken-1.dist-info").mkdir()
    (tmp_path / "broken-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: broken\nVersion: 1\n"
    )
    (tmp_path / "broken-1.dist-info" / "entry_points.txt").write_text(
        "[envdoctor.smokes]\nx = nowhere:register\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (trouble,) = read_catalogue(sys.executable, 30).troubles
    assert trouble.startswith("entry point x: ModuleNotFoundError")
