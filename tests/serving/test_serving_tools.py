"""The tools answer as the commands do, within bounds; what they must not do is refused."""

from __future__ import annotations

import json

import pytest
from mutated_requests import PASTE, TARGET

from envdoctor.cli import main
from envdoctor.errors import InputError
from envdoctor.serving.bounds import LIMIT, bounded
from envdoctor.serving.tools import TOOLS, Settings


def call(name, **arguments):
    return TOOLS[name].answer(arguments, Settings())


def test_a_paste_is_diagnosed_without_its_facts():
    told = call("diagnose", text=PASTE)
    assert "PAIR-TRL-BELOW-0.8" in [finding["id"] for finding in told["findings"]]
    assert sum(told["checks"].values()) > 100
    assert "facts" not in told
    assert told["exit_code"] == 1


def test_what_leaves_is_redacted():
    told = call(
        "diagnose", text=PASTE + "File /home/maria/train.py, line 3\nRuntimeError: /home/maria broke\n"
    )
    assert "maria" not in json.dumps(told)


@pytest.mark.parametrize("folder", ["/usr", "/etc/passwd", "\x00", "no/such", "x" * 5000])
def test_only_an_environment_is_examined(folder):
    with pytest.raises(InputError, match="no folder of a virtual or conda environment"):
        call("diagnose", environment=folder)


def test_why_not_is_the_commands_answer(capsys):
    options = ["--gpu", "T4", "--driver", "580.82", "--python-version", "3.12"]
    asked = ["why-not", "flash-attn==2.8.3", *options, "--platform", "x86_64-manylinux_2_35"]
    assert main([*asked, "--offline", "--format", "json"]) == 1
    assert call("why_not", requests=["flash-attn==2.8.3"], **TARGET) == json.loads(capsys.readouterr().out)


def test_memory_fits_the_card_or_not():
    run = {"model": "llama-3.1-8b", "stack": "torch=2.9.1", "gpu": "RTX 4090"}
    assert call("memory", method="qlora", **run)["fits"] is True
    assert call("memory", method="full", **run)["fits"] is False


def test_a_finding_is_explained_by_its_id_or_the_nearest_are_named():
    assert "top_k_top_p_filtering" in call("explain", id="pair-trl-below-0.8")["title"]
    with pytest.raises(InputError, match=r"PAIR-TRL-BELOW-0\.8"):
        call("explain", id="PAIR-TRL-BELOW-0.9")


def test_every_tool_says_what_it_takes_and_gives():
    for tool in TOOLS.values():
        assert tool.takes["additionalProperties"] is False
        assert tool.gives["properties"]
        json.dumps([tool.takes, tool.gives])


def test_a_short_answer_is_whole():
    assert bounded({"a": [1, {"b": "c"}], "d": None}) == {"a": [1, {"b": "c"}], "d": None}


@pytest.mark.parametrize(
    "answer",
    [
        {"a": "x" * 1_000_000},
        {"a": ["y" * 90] * 10_000},
        {"a": {f"k{i}": {"z": ["w" * 50] * 50} for i in range(500)}},
        {f"k{i}" * 100: "é" * 3000 for i in range(150)},
        {"a": [[[[[[[[[[[[["deep" * 1000]]]]]]]]]]]]]},
    ],
)
def test_a_long_answer_is_cut_and_says_so(answer):
    shown = bounded(answer)
    assert len(json.dumps(shown)) <= LIMIT
    assert sum(shown["left_out"].values()) > 0
