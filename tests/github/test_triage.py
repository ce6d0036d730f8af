"""One comment under an issue: only what is certain, nothing of the reporter's, found again by its key."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from events import PASTE, comment_event, event, issue
from markdown_it import MarkdownIt

from envdoctor.cli import main
from envdoctor.pastes.events import event_text

ROOT = Path(__file__).parents[2]
TRIAGE = ROOT / ".github" / "action" / "triage.sh"


@pytest.fixture
def comment(tmp_path, capsys):
    def draw(text):
        path = tmp_path / "event.json"
        path.write_text(text, encoding="utf-8")
        code = main(["diagnose", "--from", str(path), "--format", "comment"])
        return code, capsys.readouterr().out

    return draw


def test_a_certain_finding_is_told_with_its_remedy_and_nothing_of_the_reporter(comment):
    code, told = comment(event())
    assert code == 1
    assert told.startswith("<!-- envdoctor:triage findings=2 -->\n")
    assert "PAIR-TRL-BELOW-0.8" in told or "PAIR-TRL-TOP-K-TOP-P" in told
    assert "pip install" in told
    assert len(told) < 5000
    for theirs in ("@maintainers", "@everyone", "#123", "onerror", "evil", "please", "maria", "<img"):
        assert theirs not in told
    tokens = [t for token in MarkdownIt("commonmark").parse(told) for t in (token, *(token.children or ()))]
    html = [t.content for t in tokens if t.type in ("html_block", "html_inline")]
    assert html == ["<!-- envdoctor:triage findings=2 -->\n"]
    assert not [t for t in tokens if t.type in ("link_open", "image")]


@pytest.mark.parametrize(
    "body",
    [
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "ImportError: cannot import name 'top_k_top_p_filtering' from 'transformers'",
    ],
)
def test_what_is_not_certain_is_not_told(comment, body):
    _, told = comment(event(body))
    assert told.startswith("<!-- envdoctor:triage findings=0 -->\nNothing is certain")
    assert "pip install" not in told


def test_a_comment_counts_when_the_reporter_wrote_it():
    assert "trl==0.7.11" in str(event_text(comment_event(PASTE, "maria")))
    assert "trl==0.7.11" not in str(event_text(comment_event(PASTE, "somebody")))


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"title": 1, "body": 2}', '{"issue": []}', "trl==0.7.11"])
def test_what_is_no_event_is_read_as_before(text):
    assert event_text(text) is None


def test_an_issue_of_the_api_and_one_without_text_are_read():
    import json

    assert event_text(json.dumps(issue("x"))) == "trl does not import\n\nx"
    assert event_text(event(None)) == "trl does not import"


GH = """#!/usr/bin/env bash
echo "$*" >> "$CALLS"
case "$*" in *--paginate*) echo "$EXISTING" ;; esac
"""


def triage(folder, text, existing="", token="t"):
    (folder / "event.json").write_text(text, encoding="utf-8")
    (folder / "gh").write_text(GH, encoding="utf-8")
    (folder / "gh").chmod(0o755)
    (folder / "envdoctor").write_text(
        f'#!/bin/sh\nexec {sys.executable} -m envdoctor "$@"\n', encoding="utf-8"
    )
    (folder / "envdoctor").chmod(0o755)
    env = {
        **os.environ,
        **{
            "PATH": f"{folder}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(folder),
            "CALLS": str(folder / "calls"),
        },
        **{"GITHUB_EVENT_PATH": str(folder / "event.json"), "GITHUB_OUTPUT": str(folder / "output")},
        **{"GITHUB_REPOSITORY": "o/r", "ISSUE_NUMBER": "7", "GH_TOKEN": token, "EXISTING": existing},
    }
    done = subprocess.run(["bash", str(TRIAGE)], env=env, capture_output=True, text=True, check=False)
    calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
    return done, calls


BROKEN = event("GPU: Tesla K80\ntorch==2.9.0+cu128\n")
MENDED = event("GPU: Tesla T4\ntorch==2.6.0\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize(
    ("text", "existing", "called"),
    [
        (BROKEN, "", "-X POST repos/o/r/issues/7/comments"),
        (BROKEN, "42", "-X PATCH repos/o/r/issues/comments/42"),
        (MENDED, "42", "-X PATCH repos/o/r/issues/comments/42"),
        (MENDED, "", None),
    ],
    ids=["first", "again", "mended", "nothing"],
)
def test_the_action_posts_one_comment_and_writes_over_it(tmp_path, text, existing, called):
    done, calls = triage(tmp_path, text, existing)
    assert done.returncode == 0, done.stderr
    written = [call for call in calls if "-X" in call]
    assert len(written) == (called is not None)
    if called:
        assert called in written[0]
    assert f"comment={tmp_path}/envdoctor-comment.md" in (tmp_path / "output").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_without_a_token_nothing_is_posted(tmp_path):
    done, calls = triage(tmp_path, BROKEN, token="")
    assert done.returncode == 0
    assert calls == []
    assert "findings=1" in (tmp_path / "output").read_text()
