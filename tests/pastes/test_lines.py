"""Short texts at the edges of what the readers know, and all that is read of each.

A line of `lines.tsv` holds a text (`\\n` is a break, `␍` a carriage return, `⟨x×9⟩` nine times x; `«name»`
before it is its file's name) and the facts that it tells; of several GPUs the first and the last. Several
files are read together, and so is a lock file, from a folder in which `«+name»` only lies beside. To add one,
write the text alone and run `python tests/pastes/test_lines.py`: it fills the facts in, and its diff says
what is read otherwise.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_whole_readings import leaves

from envdoctor.facts import Facts
from envdoctor.facts.codec import to_json
from envdoctor.inputs import is_lock
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste, read_files

RECORD = Path(__file__).parent / "lines.tsv"
RECORDED = RECORD.read_text(encoding="utf-8").splitlines()
TOGETHER = 8
"""Lines that one test reads."""
PASSED_OVER = ("schema", "origin", "unread")


def facts_of(line: str) -> Facts:
    """Return the facts that the texts of a line tell."""
    text = re.sub("⟨([^×]+)×([0-9]+)⟩", lambda m: m[1] * int(m[2]), line)
    before, *named = re.split("«([^»]+)»", text.replace("\\n", "\n").replace("␍", "\r"))
    files = dict(zip(named[::2], named[1::2], strict=True)) if not before else {"": before + "".join(named)}
    if len(files) == 1 and not is_lock(name := next(iter(files))):
        return parse_paste(files[name], "", load_matrix().lexicon, name)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name.lstrip("+")).write_text(text, encoding="utf-8", newline="")
        read = [str(Path(folder) / name) for name in files if not name.startswith("+")]
        return read_files(read, load_matrix().lexicon)


def told(read: Facts) -> str:
    """Return facts on one line, and where they were read."""
    facts = to_json(read)
    if gpus := facts.get("gpus", {}).get("value"):
        facts["gpus"]["value"] = {str(gpu["index"]): gpu for gpu in (gpus[0], gpus[-1])}
    told = [(fact, str(value)) for fact, value in leaves(facts) if not fact.startswith(PASSED_OVER)]
    said = [f"{fact}={value}" for fact, value in told if not fact.endswith(".source")]
    places = dict.fromkeys(value for fact, value in told if fact.endswith(".source"))
    return " | ".join((*said, *places)).replace("\n", "\\n")


def reading(line: str) -> str:
    """Return what is read of a text."""
    return told(facts_of(line))


def lines(recorded: Sequence[str]) -> list[str]:
    """Return lines of the record as they would be written today."""
    return [f"{text}\t{reading(text)}" for text in (line.partition("\t")[0] for line in recorded)]


@pytest.mark.parametrize("first", range(0, len(RECORDED), TOGETHER))
def test_lines_of_the_record_are_read_as_they_were(first: int) -> None:
    some = RECORDED[first : first + TOGETHER]
    assert lines(some) == some


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines(RECORDED)) + "\n", encoding="utf-8")
