"""A mistyped call gets one line with the nearest names; help opens with examples that parse."""

from __future__ import annotations

import importlib
import shlex

import pytest

from envdoctor.cli import COMMANDS, build_parser, main


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("diagnos", "diagnos: no such command; nearest: diagnose"),
        ("xyzzy", "xyzzy: no such command; there are diagnose, fix, pin"),
        ("memory --model m --modle x", "--modle: `envdoctor memory` has no such option; nearest: --model"),
        ("diagnose --frm=x", "--frm: `envdoctor diagnose` has no such option; nearest: --from"),
        ("diagnose --format jsn", "--format jsn: none of text, json,"),
        (
            "diagnose issue.md",
            "issue.md: one argument more than `envdoctor diagnose` takes; a file is given with --from",
        ),
        ("memory --model m --task dop", "nearest: dpo"),
        ("memory --modle x", "--modle: `envdoctor memory` has no such option; nearest: --model"),
        ("memory --batch 1", "required: --model"),
        ("memory qwen2.5-7b --batch 1", "qwen2.5-7b: say what it is, --model qwen2.5-7b"),
        ("memory", "required: --model (see `envdoctor memory --help`)"),
        ("memory --model m --batch two", "invalid int value: 'two'"),
        ("matrix updat", "nearest: update"),
        ("rules PAIR-TRLL", "no check has this id; nearest: PAIR-TRL"),
        ("diagnose --select PAIR-TRLL", "no check has this id; nearest: PAIR-TRL"),
        ("memory --model llama-3.1-9b", "nearest: llama-3.1-8b"),
        ("bundle --for vlm --preview", "nearest: vllm"),
    ],
)
def test_one_line_and_exit_2(capsys, call, said):
    assert main(shlex.split(call)) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert error.startswith("envdoctor: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_opens_with_three_examples_that_parse(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    examples = importlib.import_module(f"envdoctor.cli.{COMMANDS[command].module}").EXAMPLES
    assert len(examples) == 3
    for meaning, call in examples:
        assert shown.index(f"# {meaning}") < shown.index("options:")
        assert build_parser(command).parse_args([command, *shlex.split(call)]).command == command


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(command):
    parser = build_parser(command)
    (subparsers,) = (action for action in parser._actions if hasattr(action, "_name_parser_map"))
    unexplained = [action.dest for action in subparsers._name_parser_map[command]._actions if not action.help]
    assert unexplained == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("--task grpo --batch 4 --num-generations 8", "does not divide the 4 rows of a step"),
        ("--task grpo --batch 4 --num-generations 1", "GRPO compares at least two"),
        ("--task sft --num-generations 8", "only GRPO and RLOO have it"),
    ],
)
def test_a_number_of_completions_that_the_trainer_refuses(capsys, call, said):
    assert main(["memory", "--model", "qwen2.5-0.5b", *shlex.split(call)]) == 2
    assert said in capsys.readouterr().err


def test_the_check_that_help_names_is_one(capsys):
    from envdoctor.cli.rules import EXAMPLES

    named = [call for _, call in EXAMPLES if call and not call.startswith("-")]
    assert named
    assert [main(["rules", name]) for name in named] == [0] * len(named)


@pytest.mark.parametrize("identity", ["UNEXPLAINED-ERROR", "BACKEND-NOT-JUDGED"])
def test_what_looks_at_the_others_findings_is_listed_and_explained(capsys, identity):
    assert main(["rules"]) == 0
    assert identity in capsys.readouterr().out
    assert main(["rules", identity]) == 0
    assert "title" in capsys.readouterr().out
