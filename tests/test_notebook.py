"""In a notebook: `%load_ext envdoctor`, `%envdoctor`, and values that show themselves as reports."""

from __future__ import annotations

import html
import re

import pytest

import envdoctor
from envdoctor import notebook

PASTE = "GPU: Tesla T4\ntrl==0.7.11\ntransformers==4.40.1\ntorch==2.1.0\n"
TARGET = {"gpus": ["T4"], "python_version": "3.12", "platform": "x86_64-manylinux_2_35", "offline": True}


class Shell:
    """What IPython gives an extension, as far as it is used."""

    def __init__(self):
        self.magics = {}

    def register_magic_function(self, function, magic_kind, magic_name):
        self.magics[magic_kind, magic_name] = function


def page(value):
    shown = value._repr_html_()
    assert shown.startswith("<iframe sandbox srcdoc=")
    inner = html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1])
    assert "<script" not in inner
    return inner


def test_the_extension_brings_one_magic_for_lines_and_cells():
    shell = Shell()
    envdoctor.load_ipython_extension(shell)
    assert list(shell.magics) == [("line_cell", "envdoctor")]


def test_a_cell_is_a_paste_and_its_diagnosis_a_report():
    assert "PAIR-TRL-BELOW-0.8" in page(notebook.magic("", PASTE))


def test_words_are_a_command(capsys):
    assert notebook.magic("memory --model qwen2.5-0.5b --stack torch=2.9.1 --gpu T4 --method lora") is None
    assert "it fits the card" in capsys.readouterr().out
    notebook.magic("rules --help")
    assert "usage: envdoctor rules" in capsys.readouterr().out


def test_options_alone_diagnose_this_kernel(monkeypatch):
    called = []
    monkeypatch.setattr("envdoctor.cli.main", called.append)
    notebook.magic("--gpu T4")
    import sys

    assert called == [["diagnose", "--gpu", "T4", "--python", sys.executable]]


def test_every_value_shows_its_report():
    run = envdoctor.StatedRun(method="lora")
    assert "qwen" in page(envdoctor.choose_profile("qwen2.5-0.5b", gpus=["T4"], stack="torch=2.9.1"))
    assert "GiB" in page(envdoctor.predict("qwen2.5-0.5b", run, stack="torch=2.9.1"))
    assert "flash-attn" in page(envdoctor.why_not(["flash-attn==2.8.3"], **TARGET))
    assert "requires" in page(envdoctor.pin(["trl"], **TARGET))
    assert "GiB" not in page(envdoctor.pin(["torch==2.9.0", "torch<2"], **TARGET))


def test_in_a_real_shell(capsys):
    shell = pytest.importorskip("IPython.core.interactiveshell", reason="needs IPython").InteractiveShell()
    shell.run_line_magic("load_ext", "envdoctor")
    diagnosis = shell.run_cell_magic("envdoctor", "", PASTE)
    data, _ = shell.display_formatter.format(diagnosis)
    assert "PAIR-TRL-BELOW-0.8" in data["text/html"]
