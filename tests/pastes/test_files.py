"""Files, standard input and huge logs: read in bounded memory, refused by name when unusable."""

from __future__ import annotations

import io
import json
import tracemalloc

import pytest

from envdoctor.errors import InputError
from envdoctor.facts import Facts, to_json
from envdoctor.matrix import load_matrix
from envdoctor.matrix.lexicon import Lexicon
from envdoctor.pastes import files, parse_paste, read_files
from envdoctor.pastes.datasets import tokens_of
from envdoctor.pastes.files import HEAD, TAIL, WHOLE, _looks_binary, parse_text, read_window
from envdoctor.pastes.merge import merge_facts

NAMELESS = Lexicon(packages=load_matrix().package_names)


@pytest.fixture
def paste(tmp_path):
    def write(content: bytes | str, name: str = "issue.md") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\x7fELF\x02\x01\x00\x00" * 40, "not a text"),
        (bytes(range(128, 256)) * 9, "not a text"),
    ],
)
def test_unusable_files_are_named(paste, content, reason):
    path = paste(content, "x.bin")
    with pytest.raises(InputError, match=rf"x\.bin: {reason}"):
        read_files([path], NAMELESS)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(InputError, match=r"gone\.txt: cannot be read: No such file"):
        read_files([str(tmp_path / "gone.txt")], NAMELESS)
    with pytest.raises(InputError, match="Is a directory"):
        read_files([str(tmp_path)], NAMELESS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(paste, encoding):
    facts = read_files([paste("显卡：RTX 4090\ntorch: 2.1.0\n".encode(encoding))], NAMELESS)
    assert facts.distribution("torch").version == "2.1.0"
    assert facts.gpus.value[0].name == "RTX 4090"


def test_invalid_utf8_is_tolerated(paste):
    assert (
        read_files([paste(b"caf\xe9 caf\xe9\ntorch: 2.1.0\n")], NAMELESS).distribution("torch").version
        == "2.1.0"
    )


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"torch: 2.1.0\n")))
    assert read_files(["-"], NAMELESS).distribution("torch").source == "line 1"


def test_several_files_are_cited_by_name(paste):
    one = paste("torch: 2.1.0\n", "env.txt")
    two = paste("torch: 2.2.0\ntransformers: 4.38.2\n", "later.txt")
    facts = read_files([one, two], NAMELESS)
    assert facts.distribution("torch").source == "env.txt: line 1"
    assert facts.distribution("transformers").source == "later.txt: line 2"
    assert facts.notes == ("torch: 2.1.0 (env.txt: line 1), but 2.2.0 (later.txt: line 1)",)


def test_own_facts_come_back(paste):
    facts = parse_paste("torch: 2.1.0+cu121\nGPU: Tesla T4\n", "", NAMELESS)
    assert read_files([paste(json.dumps(to_json(facts)), "facts.json")], NAMELESS) == facts
    diagnosis = {"schema": "envdoctor.diagnosis/1", "facts": to_json(facts), "findings": []}
    assert read_files([paste(json.dumps(diagnosis), "diagnosis.json")], NAMELESS) == facts


def test_malformed_facts_are_refused(paste):
    text = json.dumps({"schema": "envdoctor.facts/1", "driver": {"version": 7}})
    with pytest.raises(InputError, match=r"facts.json: no facts of envdoctor: facts\.driver"):
        read_files([paste(text, "facts.json")], NAMELESS)


class Endless(io.RawIOBase):
    """A log of so many bytes, made as it is read."""

    def __init__(self, size: int, line: bytes) -> None:
        self.left, self.block = size, line * ((1 << 20) // len(line) + 1)

    def read(self, size: int = -1) -> bytes:
        chunk = self.block[: min(size, self.left)]
        self.left -= len(chunk)
        return chunk


def test_a_huge_log_takes_little_memory_and_keeps_its_errors():
    filler = b"step 17 loss 0.5 and so on for a while\n" * 400
    line = filler + b"RuntimeError: no kernel image is available for execution on the device\n"
    tracemalloc.start()
    data, left_out = read_window(Endless(100 << 20, line))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert left_out > 90 << 20
    assert len(data) < WHOLE
    assert b"no kernel image" in data
    assert peak < 24 << 20


def test_of_the_middle_each_telling_line_is_kept_once_and_of_a_long_one_what_stands_around():
    begin, quiet = b"h" * HEAD, b"nothing is here\n"
    long = b"x" * 3000 + b" error " + b"y" * 3000
    middle = b"\nit failed once\nit failed once\n" + long + b"\n" + quiet * (WHOLE // 16)
    last = b"now it failed\n" + quiet * (2 * TAIL // 16)
    data, left_out = read_window(io.BytesIO(begin + middle + last))
    around = b"x" * 2046 + b" error " + b"y" * 2043
    kept = b"\n".join((around, b"it failed once", b"now it failed"))
    assert data == b"\n".join((begin, kept, quiet * (TAIL // 16 - 1)))
    assert left_out == len(begin + middle + last) - len(data)


def test_a_huge_log_keeps_head_and_tail(paste, symptoms):
    body = b"nothing to see in this line\n" * (WHOLE // 14)
    facts = read_files(
        [paste(b"torch: 2.1.0\n" + body + b"transformers: 4.38.2\n")],
        Lexicon(symptoms, packages=load_matrix().package_names),
    )
    assert facts.distribution("torch").version == "2.1.0"
    assert facts.distribution("transformers").version == "4.38.2"
    assert "only searched for error lines" in facts.notes[-1]


def test_merging_nothing_knows_nothing():
    assert merge_facts([]) == Facts(origin="paste")


def test_of_files_that_contradict_each_other_the_first_holds_and_it_is_said():
    first = "driver: 550.54\nGPU: Tesla T4\ntorch: 2.1.0\ntrl: 0.8\nnvcc: 12.1\n"
    second = "driver: 535.10\nGPU: A100\ntorch: 2.2.0\ntrl: 0.8.6\nnvcc: 11.8\nglibc: 2.31\n"
    lexicon = load_matrix().lexicon
    facts = merge_facts([parse_paste(first, "a.txt", lexicon), parse_paste(second, "b.txt", lexicon)])
    assert facts.notes == (
        "driver.version: 550.54 (a.txt: line 1), but 535.10 (b.txt: line 1)",
        "gpus: Tesla T4 (a.txt: line 2), but A100 (b.txt: line 2)",
        "torch: 2.1.0 (a.txt: line 3), but 2.2.0 (b.txt: line 3)",
    )
    assert (facts.distribution("torch").version, facts.distribution("trl").version) == ("2.1.0", "0.8.6")
    assert [str(toolkit.version) for toolkit in facts.toolkits.value] == ["12.1", "11.8"]
    assert facts.host.glibc.value == "2.31"


def test_half_a_surrogate_pair_leaves_the_rest_readable():
    facts = parse_text("\ud800 it broke\ntorch: 2.1.0\n", "", load_matrix().lexicon)
    assert facts.distribution("torch").version == "2.1.0"


def test_more_than_a_tenth_of_what_no_text_holds_makes_a_file_none() -> None:
    codes = (*range(1, 32), 0x7F, 0xFFFD)
    odd = [code for code in codes if _looks_binary(chr(code) * 11 + "a" * 89)]
    assert odd == [*range(1, 8), *range(14, 27), 0xFFFD]
    assert not any(_looks_binary(chr(code) * 10 + "a" * 90) for code in codes)


def test_dense_scripts_take_more_tokens() -> None:
    told = {chr(code): tokens_of(chr(code) * 12) for code in (0x61, 0x2E7E, 0x2E7F, 0x2E80, 0x4E00)}
    assert list(told.values()) == [3, 3, 3, 8, 8]


def test_a_log_is_read_up_to_the_limit_and_no_further(monkeypatch):
    limit = WHOLE + 1 + 3 * files.CHUNK
    monkeypatch.setattr(files, "LIMIT", limit)
    data, left_out = read_window(Endless(2 * limit, b"nothing is here\n"))
    assert len(data) + left_out == limit
