"""The server as an assistant's client meets it: over standard input and output, by the official SDK."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mutated_requests import PASTE, RIGHT, broken_lines, mutated

from envdoctor.cli import main
from envdoctor.serving.bounds import LIMIT

SERVER = str(Path(__file__).parent / "watched_server.py")


def test_without_the_sdk_one_line_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "envdoctor.serving.server", raising=False)
    assert main(["mcp"]) == 3
    assert "pip install 'envdoctor-gpu[mcp]'" in capsys.readouterr().err


def ask(folder, requests):
    """Return the tools, the answers, and what the server said on standard error."""
    anyio = pytest.importorskip("anyio", reason="needs the extra `mcp`")
    pytest.importorskip("mcp_types", reason="needs the extra `mcp`, 2 or newer")
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    told = folder / "errors.txt"
    inside = folder / "inside"
    inside.mkdir()

    async def talk():
        with told.open("w", encoding="utf-8") as errors:
            server = StdioServerParameters(command=sys.executable, args=[SERVER], cwd=inside)
            async with Client(stdio_client(server, errors)) as client:
                tools = (await client.list_tools()).tools
                answers = [await client.call_tool(name, arguments) for name, arguments in requests]
        return tools, answers

    tools, answers = anyio.run(talk)
    assert list(inside.iterdir()) == []
    return tools, answers, told.read_text(encoding="utf-8")


def test_tools_are_listed_as_read_only_with_schemas_and_answer(tmp_path):
    chosen = [RIGHT[0], RIGHT[-1]]
    tools, answers, said = ask(tmp_path, chosen)
    assert [tool.name for tool in tools] == ["diagnose", "why_not", "pin", "memory", "profile", "explain"]
    assert all(tool.annotations.read_only_hint and tool.output_schema for tool in tools)
    assert [answer.is_error for answer in answers] == [False] * len(chosen)
    assert "PAIR-TRL-BELOW-0.8" in answers[0].content[0].text
    assert answers[0].structured_content["exit_code"] == 1
    assert said == ""


def test_what_a_confused_assistant_sends_harms_nothing(tmp_path):
    requests = [one for one in mutated(40, seed=1) if one[1].get("text") != PASTE]
    _, answers, said = ask(tmp_path, [*requests, RIGHT[-1]])
    assert len(answers) == len(requests) + 1
    assert not answers[-1].is_error
    assert all(len(answer.content[0].text) <= LIMIT for answer in answers)
    assert not [answer for answer in answers if answer.content[0].text.startswith("envdoctor broke")]
    assert said == ""


def test_broken_lines_end_nothing_before_the_input_ends(tmp_path):
    pytest.importorskip("mcp_types", reason="needs the extra `mcp`, 2 or newer")
    given = b"".join(broken_lines(50))
    done = subprocess.run(
        [sys.executable, SERVER], input=given, capture_output=True, cwd=tmp_path, timeout=100, check=False
    )
    assert done.returncode == 0
    assert b"DID " not in done.stderr
