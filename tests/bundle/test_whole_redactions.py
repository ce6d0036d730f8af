"""Everything that redaction takes and leaves, not only what one test asks for.

`whole_redactions.tsv` is the record: each *value* with the judgements on it; each *label* in its surroundings
with a mark for each value beside it (`x` it is taken, `.` it is left, `o` other text is taken, too), and the
same in each *place*; each line that tells *who* or where, each *table* and each *rewritten* secret, as it is
shown; over how much of something a *reach* goes; and what is left of values of growing *length*; the *forms*
in which a known value is sought; which *bytes* may stand in encoded text; and what is looked at *beside*
what was taken out. After a finder or a row changed, `python tests/bundle/test_whole_redactions.py`
writes it anew, and its diff says what else is taken or left.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pytest
from secret_grid import Cell, Label, Rule, contexts, identities, labelled, templates

from envdoctor.bundling import Redactor
from envdoctor.bundling import secret_values as judged
from envdoctor.bundling.known_values import base64_cores, encodings, is_worth_hiding
from envdoctor.bundling.redaction import _beside
from envdoctor.bundling.secret_search import _decode_base64, find_secrets
from envdoctor.bundling.sought import Searched
from envdoctor.bundling.spans import merge
from envdoctor.bundling.unwrapping import apply_edits

HERE = Path(__file__).parent
RECORD = HERE / "whole_redactions.tsv"
MIXED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def drawn(count: int, letters: str = MIXED) -> str:
    r = random.Random(count)
    return "".join(r.choice(letters) for _ in range(count))


DRAWN = [drawn(n) for n in (3, 4, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 20, 22, 40, 64, 65, 127, 128, 129)]
LOWER = [drawn(n, "bcdfghjklmnpqrstvwxz") for n in (7, 8, 9, 15, 16, 17, 64, 65)]
NUMBERS = [drawn(n, "123456789") for n in (1, 3, 4, 5, 11, 12, 13, 15, 16, 17)]
HEXADECIMAL = [drawn(n, "0123456789abcdef") for n in (7, 8, 12, 16, 32, 40, 64)]
_CHOSEN = """
Hunter2! hunter2! Hunter22 Tr0ub4dor&3 correct-horse correcthorsebattery MyDogRex99 P@ssw0rd pa$$word
Sommer2024 sommer#2024 Zx9!kQ2@ qwertzuiop Ab1! Abc!d Abcdef! Abcdefg! WINTER-2024 Winter-is-coming!
AB12-CD34-EF56 ABC-DEF-GHI AB1-CD2-EF3 ABC1-DEF2 A1B2C3D4E-F5G6-H7I8 ABCD1234-EFGH5678-IJKL9012
"""
_NO_SECRETS = """
None null true *** ******** xxx xxxx xx ... .. --- __ changeme change-me change_me todo example placeholder
<token> <your-token-here> $TOKEN ${TOKEN} $(cat token) {token} {token [token] (token) %(token)s %s %d &quot;x
args.token os.environ["KEY"] self.token cfg[0] getpass() foo(bar) token.value config.api_key my_function
/home/x/key.pem ./keys/a ~/k /etc/ssl/private/key-12 ../a /a1b2c3d4e5f6g7h8/x 1.2.3 v2.10.0+cu126 2026-11-20
2026-11-20T10:11:12Z 20261120 0x7ffe12ab34cd 12.5% 1e-5 2e-05 100MB 3.5GB/s 16x16 128x256x64 4096 1,024
layer_12 cu126 sm_90 bf16 float16 model-00001-of-00003 GradientCheckpointing gradient_checkpointing
LlamaForCausalLM AutoModelForCausalLM2 per_device_train_batch_size ABCDEFGH abcdefgh sk id_rsa api_key token
Token password
de305d54-75b4-431b-adb2-eb6b9e546014 DE305D54-75B4-431B-ADB2-EB6B9E546014 a1b2c3d4 ab12 a1b2c3d4-e5f6g7h8
пароль123 mot-de-passe café-1a2b3c4d5e 你好
"""
CHOSEN, NO_SECRETS = _CHOSEN.split(), _NO_SECRETS.split()
VALUES = [*DRAWN, *LOWER, *NUMBERS, *HEXADECIMAL, *CHOSEN, *NO_SECRETS]
BESIDE = [*DRAWN[1:12:2], *LOWER[1:5:2], *NUMBERS[3:10:2], *HEXADECIMAL[2:5], *CHOSEN[:9], *NO_SECRETS[::7]]


def shown(value: str) -> str:
    return value if len(value) < 24 else f"{value[:8]}…{len(value)}"


def judgements(value: str) -> Iterator[str]:
    """Yield the names of the judgements that hold of a value."""
    for judge in (
        judged.is_mixed,
        judged.reads_like_words,
        judged.looks_like_password,
        judged.is_drawn,
        judged.is_hexadecimal,
        judged.is_placeholder,
        judged.is_code,
        judged.is_path,
        judged.is_assignment,
    ):
        if judge(value):
            yield judge.__name__
    if judged.is_drawn(value, 16):
        yield "is_drawn(16)"
    for key, quoted in (("api_token", False), ("password", True)):
        if judged.is_strong_secret(value, key, quoted):
            yield f"is_strong_secret({'quoted' if quoted else 'bare'})"
    for following in ("", ": x", "=1", "==", "(x"):
        if judged.is_continuation(value, following):
            yield f"is_continuation({following!r})"
    yield f"changes {judged.changes(value)}"


EDGES = (HERE / "edges.txt").read_text(encoding="utf-8").splitlines()
LABELS = [text.encode("latin-1", "backslashreplace").decode("unicode_escape") for text in EDGES]
PREFIXES = (
    "",
    "acme_",
    "acme_pat_",
    "sk-",
    "sha256:",
    "git-",
    "1a_",
    f"{'a' * 15}_",
    f"{'a' * 16}_",
    "x-acme-",
    "/",
    "_Z",
)
BODIES = {
    "mixed": MIXED,
    "one case": "abcdefghijklmnopqrstuvwxyz0123456789",
    "few letters": "aB1cD2",
    "hexadecimal": "0123456789abcdef",
    "no digits": "bcdfghjkLMNPQRST",
}
LENGTHS_OF_BODIES = (5, 6, 7, 11, 12, 13, 15, 16, 17, 19, 20, 21, 23, 24, 25, 26, 27, 40)
HEADS = (
    *("JOBID STATE USER NODELIST", "JOBID USER NODELIST", "PID USER", "PID STATE OWNER", "USER FROM TTY PID"),
    *("NAME|UID|NODE|SERIAL|TYPE", "NAME|STATE|NODE", "SERIAL,SIZE,OWNER,TYPE", "NAME, GUID, FD"),
)
ROWS = (
    *("1 anna gpu-1 SN1234", "22 root zeus SN123", "333 ubuntu localhost SNABCD", "4 b localhost-2 0x12345"),
    *("5 9anna node.a x", "anna 3T gpu-2", "gpu-3 3T otto", "1 anna", "12345 otto"),
)
LABEL = Label("acme", "api_key")


def mark(template: str, value: str) -> str:
    """Return what becomes of the value beside that label."""
    before, _, after = template.partition("@value@")
    spans = [s for s in merge(find_secrets(Searched(f"{before}{value}{after}"))) if s.kind]
    if not spans:
        return "."
    return "x" if [s[:2] for s in spans] == [(len(before), len(before) + len(value))] else "o"


def growing(prefix: str, letters: str) -> str:
    """Return the marks of longer and longer drawn values behind a prefix."""
    values = (drawn(n, letters) for n in LENGTHS_OF_BODIES)
    return "".join("x" if list(find_secrets(Searched(f"see {prefix}{v} now"))) else "." for v in values)


def tables() -> Iterator[str]:
    """Yield tables of every head, and one of more rows than are read."""
    for head in HEADS:
        mark = "|" if "|" in head else "," if "," in head else " "
        words = [row.replace(" ", mark) for row in ROWS]
        yield "\n".join((head, *words, "", words[0]))


def redacted(text: str) -> str:
    redactor = Redactor()
    redactor.learn(text)
    return redactor.redact(text)


TRIED = (*range(5), 8, 9, 24, 25, 26, 38, 39, 40, 41, 42, 64, 65, 66, 119, 120, 126, 127, 128, 129)
ISSUED = (
    Rule("issued", ("acme",), "[A-Za-z0-9]{24}", False),
    Rule("short", ("acme",), "[a-z]{5}[0-9]{5}", False),
)


def rewritten() -> Iterator[Cell]:
    """Yield secrets that are wrapped, boxed, encoded or escaped."""
    for place in contexts("labelled")[len(templates("labelled")) :]:
        for seed, rule in enumerate(ISSUED):
            yield from labelled(2, seed, (rule,), (place,))


CHOSEN_WORD, DRAWN_WORD = "Zx9!kQ2@", drawn(17)
REACHES: dict[str, Callable[[int], str]] = {
    "blanks before a value": lambda n: f"password:{' ' * n}{CHOSEN_WORD}",
    "empty lines before a drawn value": lambda n: "token:" + "\n" * n + DRAWN_WORD,
    "words before a drawn value": lambda n: f"the api key {'x ' * n}was {DRAWN_WORD}",
    "lines over a value in a column": lambda n: "token region\n" + "----- ------\n" * n + f"{DRAWN_WORD} eu",
    "a column's place": lambda n: f"{'a ' * n}token\n{'b ' * n}{DRAWN_WORD}",
    "bars before a cell": lambda n: f"{'a | ' * n}token\n{'b | ' * n}{DRAWN_WORD}",
    "name before a word": lambda n: f"{'A' * n}_KEY={CHOSEN_WORD}",
    "name behind a word": lambda n: f"TOKEN_{'A' * n}={CHOSEN_WORD}",
    "everyday word before": lambda n: f"cache{' ' * n}key={CHOSEN_WORD}",
    "tag behind a word": lambda n: f"password<{'a' * n}>{CHOSEN_WORD}",
    "backslashes before quotes": lambda n: 'password = {0}"{1}{0}"'.format("\\" * n, CHOSEN_WORD),
    "percent escapes in one another": lambda n: f"token%{'25' * n}3D{DRAWN_WORD}",
    "compared, behind": lambda n: f'"{DRAWN_WORD}" == {"a" * n}token',
}
LENGTHS = {
    "quoted": lambda n: f'password = "{"Zx9! " * n}"',
    "bare": lambda n: f"TOKEN={'Zx9!' * n}",
    "drawn": lambda n: f"token: {drawn(n)}",
    "encoded": lambda n: base64.b64encode(f"token={drawn(n)}".encode()).decode(),
}


def is_left(text: str) -> bool:
    spans = merge(find_secrets(Searched(text)))
    shown = apply_edits(text, [(s.start, s.end, "<>") for s in spans])
    return CHOSEN_WORD in shown or DRAWN_WORD in shown


def reach(text: Callable[[int], str]) -> str:
    """Return the ranges of numbers for which the value is taken."""
    left = {n: is_left(text(n)) for n in TRIED}
    taken = [list(numbers) for kept, numbers in groupby(TRIED, key=left.__getitem__) if not kept]
    return " ".join(f"{numbers[0]}-{numbers[-1]}" for numbers in taken)


def lengths(text: Callable[[int], str]) -> str:
    """Return how many characters are left of values of growing length."""
    counts = (7, 8, 16, 32, 100, 409, 410, 511, 512, 513, 2047, 2048, 2049)
    return " ".join(f"{n}:{len(redacted(text(n)))}" for n in counts)


SOUGHT = (
    "Zugang!42é",
    'a"b/c\\d\n',
    "&<x>'y",
    "a b+c%20",
    "é",
    "ab",
    "abcde",
    "a/b12",
    "\udc80x!1é",
    "tJ8-kd93/nPz+Q2",
)


def forms(value: str) -> str:
    """Return how a known value is sought, and whether it is worth it."""
    return repr((is_worth_hiding(value), encodings(value), base64_cores(value)))


def bytes_within() -> str:
    """Return the bytes with which, first or within, what was encoded is taken for text."""
    texts = (form % n for form in (b"%c", b"ab%c", b"a%cb") for n in range(256))
    return "".join("x" if _decode_base64(base64.b64encode(text).decode()) else "." for text in texts)


def edges_of_edits() -> Iterator[str]:
    """Yield what is looked at again around edits, in texts of so many lines."""
    for count, places in ((1, [2]), (9, [0]), (9, [8]), (9, [3, 4]), (30, [4, 9, 21]), (30, [14, 29])):
        rows = [f"row {number}" for number in range(count)]
        edits = [(sum(map(len, rows[:place])) + place, 3, f"<a-{place}>") for place in places]
        edited = [(start, start + length, shown) for start, length, shown in edits]
        text = apply_edits("\n".join(rows), edited)
        yield f"{count}\t{places}\t{[text[start:end] for start, end in _beside(text, edited)]}"


KINDS: dict[str, Callable[[], Iterable[str]]] = {
    "value": lambda: (f"{shown(value)}\t{' '.join(judgements(value))}" for value in VALUES),
    "bare": lambda: (f"{p!r}\t{n}\t{growing(p, letters)}" for p in PREFIXES for n, letters in BODIES.items()),
    "table": lambda: (repr(redacted(table)) for table in tables()),
    "label": lambda: (f"{t!r}\t{''.join(mark(t, v) for v in BESIDE)}" for t in LABELS),
    "place": lambda: (
        f"{t!r}\t{''.join(mark(LABEL.fill(t, '@value@'), v) for v in BESIDE[::6])}"
        for t in templates("labelled").values()
    ),
    "who": lambda: (repr(redacted(cell.text)) for cell in identities(1, seed=8)),
    "rewritten": lambda: (repr(redacted(cell.text)) for cell in rewritten()),
    "reach": lambda: (f"{name}\t{reach(text)}" for name, text in REACHES.items()),
    "length": lambda: (f"{name}\t{lengths(text)}" for name, text in LENGTHS.items()),
    "forms": lambda: (f"{value!a}\t{forms(value)}" for value in SOUGHT),
    "bytes": lambda: (bytes_within(),),
    "beside": edges_of_edits,
}


def lines(kind: str) -> list[str]:
    """Return a kind's part of the record as it would be written today."""
    return [f"{kind}\t{line}" for line in KINDS[kind]()]


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_taken_and_left_as_it_was(kind: str) -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    assert lines(kind) == [line for line in recorded if line.partition("\t")[0] == kind]


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line}\n" for kind in KINDS for line in lines(kind)), encoding="utf-8")
