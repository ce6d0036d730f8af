"""Labels beside values, people, machines, known secrets, formats: in surroundings drawn at random.

`drawn_labels.tsv` is the record, a word or a token a line: for each text that was drawn of it a mark (`x`:
some of it is taken, `.`: it is left), and a digest of what is shown. After a finder or a row changed, `python
tests/bundle/test_drawn_labels.py` writes it anew; with a number it shows the texts of one line. What should
be found is for the other tests to say.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from urllib.parse import quote, quote_plus
from zlib import crc32

import pytest
from pattern_draws import draw
from test_whole_redactions import VALUES

from envdoctor.bundling import Redactor
from envdoctor.bundling.known_values import KnownValues
from envdoctor.bundling.secret_formats import load_formats

RECORD = Path(__file__).with_name("drawn_labels.tsv")
TEXTS, OF_A_FORMAT = 70, 7
SOME = (*VALUES, *("7391824650738", "91824650738291", "918246507382914", "9182465073829146", "84650738291"))
_WORDS = """
token key pwd auth pass api_key secret password passwd bearer pin credential hf_token accessKey
client-secret пароль 密码 otp session cookie license OPENAI_API_KEY private_key passphrase WANDB_KEY Passwort
sas signature
"""
WORDS = (*_WORDS.split(), "API KEY", "mot de passe")


def parts(text: str) -> list[str]:
    return text.split("¦")


BEFORE = parts('¦my ¦--¦x_¦db¦DB_¦o¦2¦cache ¦the ¦"¦$¦export ¦| ¦login a ¦${')
AFTER_WORD = parts("¦¦¦s¦_1¦Id¦ring¦_file¦str¦.txt¦-keys¦value¦9¦S¦ID¦(s)")
GAPS = parts(
    ": ¦=¦ = ¦:¦ is ¦ was: ¦ ¦:\n¦:\n  ¦ |\n¦(¦('¦ <¦> ¦\": \"¦='¦…..¦ == ¦', '¦: my ¦ of x is ¦"
    "\n\n¦<b>¦%3D¦\t¦ (40 characters) was ¦: ${¦ ->  ¦=\\n"
)
BEHIND = parts("¦¦ ok¦\"¦'¦)¦\n¦/x¦(¦;¦ == x¦</b>¦…")
_TOKENS = """
10.1.2.3 192.168.7.21 8.8.8.8 12.8.93.4 127.0.0.1 255.255.255.0 1.2.3.4.5 33.1.1.1 fe80::1ff:fe23:4567:890a
2001:db8::1 aa:bb:cc:dd:ee:0f AABB.CCDD.EEFF 00:00:00:00:00:00 aabbccddeeff kepler-07 gpu-node-07 zeus
localhost a.example.com pypi.example.co.uk node-1 x.corp.internal huggingface.co python.example.org
nvidia.co.kr nvidia.com.cn nvidia.com.info ip-10-0-0-7 dgx1.lan cn[01-04] jkowalska anna.b root
otto@example.org /home/otto/x /Users/anna ~otto s3://own-bucket/x gs://models-7 own-bucket.s3.amazonaws.com
arn:aws:s3:::own-bucket s3-own-b projects/own-project-7 gcr.io/own-project/x gcr.io/team-seven/x
gcr.io/deeplearning-platform-release/x us.pkg.dev/team-x-1/y 123456789012 1234-5678-9012 i-0123456789abcdef0
ocid1.vcn.oc1.phx.aaaaaaaabbbbbbbbcccccccc de305d54-75b4-431b-adb2-eb6b9e546014
GPU-de305d54-75b4-431b-adb2-eb6b9e546014 1652922001234 MIG-GPU-de305d54-75b4-431b-adb2-eb6b9e546014/1/0
/dev/disk/by-id/nvme-SAMSUNG_MZ7_S4YNNX0R 0x506b4b0300ab1c2d
SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456 fe80:0000:0000:0000:506b:4b03:00ab:1c2d
"""
TOKENS = (*_TOKENS.split(), "C:\\Users\\otto\\x", "mlx5_0   506b4b0300ab1c2d")
LEFT = parts(
    "¦see ¦host: ¦hostname=¦version ¦driver: ¦torch==¦ssh ¦connect to ¦inet ¦ip=¦v¦://¦"
    "http://u:p@¦serial number: ¦GUID: ¦user: ¦USER=¦on node ¦--host ¦MASTER_ADDR=¦@¦account id: ¦"
    "tenant: ¦bucket=¦project: ¦Linux ¦[¦(¦nccl ¦\n¦ether ¦cuda_¦owner: ¦Nov 20 10:11:12 ¦anna@¦"
    "UUID: ¦node: ¦srun: error: ¦nodes=¦\\\\¦libcudnn ¦machine_id="
)
RIGHT = parts(
    "¦ ok¦:22¦/24¦:2345:99 [0] NCCL INFO x¦]¦)¦, 29500)¦: task 0: x¦.¦-1¦a¦.0¦<0>¦ slots=8¦"
    ":/srv on /mnt¦$ ls¦ 5.15.0-1 x¦\n¦@x¦(x)¦:~# ¦ kernel: y¦_x¦=2"
)


def labelled(word: str, dice: Random) -> str:
    """Return a word beside a value."""
    name = f"{dice.choice(BEFORE)}{word}{dice.choice(AFTER_WORD)}"
    return f"{name}{dice.choice(GAPS)}{dice.choice(SOME)}{dice.choice(BEHIND)}"


def surrounded(token: str, dice: Random) -> str:
    """Return a token in its surroundings."""
    return f"{dice.choice(LEFT)}{token}{dice.choice(RIGHT)}"


COLUMNS = ("name", "region", "team a", "x", "n (GiB)")
CELLS = ("eu-1", "7", "ok", "-", "a b", "")
BORDERS = ("", "-", "=", " ", "--- ", "-+-", "│")


def tabled(word: str, dice: Random) -> str:
    """Return a table of a few columns, one of them the word's, its values mostly under it."""
    word = word.removeprefix("column of ")
    heads = dice.sample(COLUMNS, dice.randrange(4))
    place = dice.randrange(len(heads) + 1)
    heads.insert(place, word)
    cells = [dice.choice(CELLS) for _ in heads]
    cells[place] = dice.choice(SOME)
    mark = dice.choice(("", "", "|", " | ", ",", ";", "\t", " │ "))
    if not mark:
        widths = [max(len(a), len(b)) + dice.choice((1, 2, 5)) for a, b in zip(heads, cells, strict=True)]
        heads = [h.ljust(w) for h, w in zip(heads, widths, strict=True)]
        cells = [c.ljust(w) for c, w in zip(cells, widths, strict=True)]
    borders = [dice.choice(BORDERS) * dice.choice((1, 9)) for _ in range(dice.choice((0, 0, 1, 1, 2)))]
    shift = dice.choice(("", "", "", " ", "x ", "| "))
    return "\n".join((mark.join(heads), *borders, shift + mark.join(cells)))


KNOWN = (
    's3/5"',
    "a&b c",
    "abc12",
    "Zugang!42é",
    "mkowalski",
    "kepler",
    "/srv/h",
    "tJ8-kd93/nPz+Q2",
    "x9\\n'y",
)
HELD = KnownValues(secrets=(*KNOWN[:4], *KNOWN[7:]), users=(KNOWN[4],), hosts=(KNOWN[5],), homes=(KNOWN[6],))
NEAR = parts("¦x¦x.¦.x¦\\n¦\\nx¦ ¦é¦_¦-¦9¦=¦%3D¦/¦+¦:¦Q2==")


def encoded(value: str, dice: Random) -> str:
    """Return a known value in one of the forms in which it is written."""
    raw, form = value.encode(), dice.randrange(9)
    if form == 0:
        padded = dice.choice(("", "a", "ab")) + value + dice.choice(("", "c", "cd"))
        return base64.b64encode(padded.encode()).decode()
    forms = (value, value, quote(raw), quote(raw, safe=""), quote_plus(raw), raw.hex(), value.upper())
    return (json.dumps(value)[1:-1], *forms)[form - 1]


def near(value: str, dice: Random) -> str:
    """Return a known value close to other text, or within it."""
    return f"{dice.choice(NEAR)}{encoded(value, dice)}{dice.choice(NEAR)}"


FORMATS = {f"{place} {entry.kind}": entry.pattern for place, entry in enumerate(load_formats())}


def issued(name: str, dice: Random) -> str:
    """Return what an issuer's format admits, or nearly."""
    text, value = draw(FORMATS[name], dice)
    changed = dice.choice(
        (value, value, value.lower(), value.upper(), value[:-1], value + "Zq7", f"{value}==")
    )
    return f"{dice.choice(NEAR)}{text.replace(value, changed)}{dice.choice(NEAR)}"


DRAWERS = {
    **dict.fromkeys(WORDS, labelled),
    **dict.fromkeys(TOKENS, surrounded),
    **dict.fromkeys((f"column of {word}" for word in WORDS[::2]), tabled),
    **dict.fromkeys(KNOWN, near),
    **dict.fromkeys(FORMATS, issued),
}
NAMES = tuple(DRAWERS)
SHARES = 16


def shown(number: int) -> Iterator[tuple[str, str]]:
    """Yield the texts of a line, and each as it is shown."""
    name, dice = NAMES[number], Random(NAMES[number])
    for _ in range(OF_A_FORMAT if name in FORMATS else TEXTS):
        text = DRAWERS[name](name, dice)
        redactor = Redactor(HELD if name in KNOWN else None)
        redactor.learn(text)
        yield text, redactor.redact(text)


def line(number: int) -> str:
    """Return a line of the record."""
    pairs = list(shown(number))
    marks = "".join("." if text == read else "x" for text, read in pairs)
    return f"{NAMES[number]!r}\t{marks}\t{crc32(repr(pairs).encode()):08x}"


@pytest.mark.parametrize("share", range(SHARES))
def test_every_text_of_each_word_is_shown_as_it_was(share: int) -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    assert len(recorded) == len(NAMES)
    told = {number: line(number) for number in range(share, len(NAMES), SHARES)}
    assert [said for number, said in told.items() if said != recorded[number]] == []


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*(f"{text!r}\n  {read!r}" for text, read in shown(int(sys.argv[1]))), sep="\n")
    else:
        RECORD.write_text("".join(f"{line(n)}\n" for n in range(len(NAMES))), encoding="utf-8")
