"""GPUs as people write them: `2x A100 40GB`, `Tesla K80 (3.7)`, `3x 24GB (23.64 GiB)`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from envdoctor import lazy_re as re
from envdoctor.facts import ComputeCapability, Gpu
from envdoctor.facts.quantities import GIB, parse_size
from envdoctor.matrix.card_names import CardName, CardNames
from envdoctor.pastes.sightings import Sighting
from envdoctor.values import NamedTuple

_COUNT = re.compile(
    r"(?i)^\(?(\d{1,4})\s*(?:[x*]|张|块|个|卡|cards?\b|gpus?\b)\s*(?=\S)|^([248])\s+(?=[A-Z])"
)
_COUNT_AFTER = re.compile(
    r"(?i)(?:[\s(,][x*×]|[*×])\s?(\d{1,4})\)?(?:\s(?:gpus?|cards?|cluster|node|server|machine))?\s*$|"
    r"\s(\d{1,3})\s?[x*×]\)?$"
)
_COUNT_BEHIND = re.compile(
    r"(?i)(?:\s?(?:[(-]?\d{1,3}\s?GB?\)?)?(?:\s[x*×]|[*×])\s?|\. Num GPUs = )(\d{1,2})(?!\w|\.\w)"
)
_CAPABILITY = re.compile(
    r"(?i)(?:sm[_ ]?|cc\s?|compute capability[: ]{0,2}|capability[: ]{0,2})(\d{1,2}\.?\d)\b"
)
_BARE_CAPABILITY = re.compile(r"\((\d{1,2}\.\d)\)")
_FAMILY = (
    r"(?:RTX\s?(?:PRO\s?)?A?\d{3,4}(?:\s?Ada(?:\s?Generation)?)?(?:\s?(?:Ti|SUPER|D|Blackwell))*|GTX\s?\d{3,4}(?:\s?Ti)?"
    r"|TITAN\s?(?:RTX|Xp?|V)|(?:GB|GH)\d{3}|A[2-6]\d00|[HBALVTPKM]\d{1,3}[a-z]?(?:-\w+){0,4}|DGX\s?Spark|Orin|Thor)"
)
_NAMED = re.compile(
    rf"(?i)(?<![\w-])((?:NVIDIA[ _-]{{1,2}})?(?:(?:GeForce|Tesla|Quadro|Jetson|AGX|TITAN)\s)"
    rf"{{0,2}}{_FAMILY})(?![\w.])"
)
_COUNT_BEFORE = re.compile(r"([单一双两四八]|(?<![\w.])\d{1,2})\s?(?:[xX*×]|[卡张块个])\s?的?\s?$")
_SPOKEN_BEFORE = re.compile(
    r"(?i)\b(single|one|dual|two|three|four|six|eight|sixteen|(?:on|with|has|have|using|use|of|over|across|our|my|got)"
    r"\s(?=\d))(\d{1,2})?\s$"
)
_CARDS_AFTER = re.compile(r"(?i)s?\s?(?:\(?\d{1,3}\s?GB?\)?\s)?(?:gpus?|cards?)\b")
_NUMBER_OF_CARDS = re.compile(r"(?:\d[xX*×]|[卡张块个]\s?的?\s?)$")
_MEMORY_AFTER = re.compile(
    r"(?i)(?:[\s(,-]{1,3}|\swith\s)(?:MIG )?(?:\d{1,2}g\.)?(\d{1,3})\s?(?:GB|GiB|G)\b(?!\.\d)"
)
_HOST = (
    r"\s?(?:of )?(?:(?:system|host|cpu|main) (?:ram|memory)|ram\b|ddr\d?|内存|"
    r"(?:(?:local|free|fast) )?(?:nvme|ssd|hdd|disk|storage|swap|硬盘))"
)
_OF_THE_HOST = re.compile(rf"(?i){_HOST}")
"""What follows a size that is not a card's."""
_HOST_MEMORY = re.compile(rf"(?i)\b\d{{1,4}}\s?(?:GB|GiB|G){_HOST}")
_REBUILT = 2.1
"""How many times a card's memory a rebuilt one may have (a 4090 of 48 GB); more is the machine's."""
_PLAIN = re.compile(r"[abghlpv]{1,2}\d{3}[a-z]?|[al]40s?|[ah]20|l20|a10g|a\d{4}|k80|p40|m40|p\d{3}|ax800")
"""Names that are nothing but a card's in any sentence."""
_LIKELY = re.compile(r"[tlp]4|a10|a16|a30|t4g")
"""Names that are a card's in a line that speaks of cards or of where such are lent, or after “on”."""
_OF_CARDS = re.compile(
    r"(?i)\b(?:colab|kaggle|gpus?|vram|nvidia|cuda|graphics card|instance|g4dn|g6|b?fp?16|q?lora)\b"
)
_OWNED = re.compile(r"(?i)\b(?:an?|my|the|one|single|our|this)\s$|显卡[::]?\s?$")
_ON = re.compile(r"(?i)\b(?:on|with|using)\s$")
_ON_ONE = re.compile(r"(?i)\bon\s(?:(?:an?|one|my|the|single|free)\s)?$")
_ENDED = re.compile(r"(?i)\s?(?:$|[.,;:!?()]|(?:gpus?|cards?|super|ti|with|using|and)\b)")
_MARKET = re.compile(r"[2-5]0[5-9]0")
_TIERED = re.compile(r"(?:10[5-8]0|[2-5]0[5-9]0) (?:ti|super)")
"""Numbers that are a card's wherever they stand."""
_TIMES = re.compile(
    r"(?i)(?<![\d.x×*] )(?<![\w.])(?:[1-9]|1[0-6])\s?[x×*]\s$|\b(?:single|dual|two|three|four|six|eight)[ -]$"
)
"""A small number of such cards: no side of a picture or a matrix."""
_COUNTED = re.compile(
    r"(?i)\s(?:\w{1,16}\s)?(?:steps?|tokens?|samples?|rows?|items?|examples?|iterations?|px|points?)\b"
)
"""What follows a number of things, not a card's."""
_NUMERALS = {
    **{"单": 1, "一": 1, "双": 2, "两": 2, "四": 4, "八": 8, "single": 1, "one": 1, "dual": 2, "two": 2},
    **{"three": 3, "four": 4, "six": 6, "eight": 8, "sixteen": 16},
}


def parse_gpus(text: str, source: str, cards: CardNames) -> tuple[Gpu, ...]:
    """Return the GPUs that the value of a `GPU:` line names, one each; empty when it names none."""
    known = cards.find_one(text)
    told = ((count, _parse_one(name, source, cards)) for count, name in _parts(_HOST_MEMORY.sub("", text)))
    gpus = [gpu for count, gpu in told if gpu and _is_a_card(gpu, known) for _ in range(count)]
    return tuple(replace(gpu, index=index) for index, gpu in enumerate(gpus[:1024]))


class Listed(NamedTuple):
    """The cards of a line, and of those above it that had the same label."""

    line: int = -9
    label: str = ""
    cards: tuple[Gpu, ...] = ()


def with_those_above(
    before: Listed, index: int, label: str, found: list[Sighting]
) -> tuple[Listed, list[Sighting]]:
    """Add the cards of a line to other ones right above it under the same label: a list, one a line."""
    cards = next((sighting.value for sighting in found if sighting.place == "gpus"), ())
    if not cards or not all(card.name for card in cards):
        return before, found
    goes_on = (before.line, before.label) == (index - 1, label)
    if goes_on and not any(same_gpu(card, above) for card in cards for above in before.cards):
        cards = (*before.cards, *cards)
        found = [replace(s, value=cards) if s.place == "gpus" else s for s in found]
    return Listed(index, label, cards), found


def same_gpu(a: Gpu, b: Gpu) -> bool:
    """True for cards of which one's name is told within the other's, or not at all."""
    if a.name is None or b.name is None:
        return True
    one, two = _bare(a.name), _bare(b.name)
    return one in two or two in one


def _bare(name: str) -> str:
    return name.lower().replace("nvidia", "").replace("geforce", "").replace("tesla", "").replace(" ", "")


def find_gpus(line: str, source: str, cards: CardNames) -> tuple[Gpu, ...]:
    """Return the GPUs that running text mentions in an unmistakable form."""
    known = [_sighted(line, found, source) for found in cards.find(line)]
    gpus = [gpu for of_name in known for gpu in of_name]
    return tuple(replace(gpu, index=index) for index, gpu in enumerate(gpus))


def _sighted(line: str, found: CardName, source: str) -> list[Gpu]:
    """Return the cards of a name in running text; none where the words may mean something else."""
    before, after = line[max(0, found.start - 16) : found.start], line[found.end : found.end + 24]
    memory, word = _MEMORY_AFTER.match(after), found.words[0]
    count, of_cards = _count_told(before, after)
    sure = found.branded or count or (memory and not word.isdigit()) or _PLAIN.fullmatch(word)
    sure = sure or (_LIKELY.fullmatch(word) and (_OF_CARDS.search(line) or _ON_ONE.search(before)))
    if word.isdigit() and not found.branded:
        market = _MARKET.fullmatch(word) and not _COUNTED.match(after)
        owned = _OWNED.search(before) or (_ON.search(before) and _ENDED.match(after))
        fits = memory is not None and found.row is not None and int(memory[1]) == found.row.memory_gib
        tier = _TIERED.fullmatch(" ".join(found.words[:2]))
        sure = (count and of_cards) or tier or (market and (owned or fits or _TIMES.search(before)))
    if not sure:
        return []
    name = _written(line, found)
    size = _size_told(memory, after, found) if memory else _size_in(name, found)
    return [Gpu(0, source, name=name, memory_total_bytes=size)] * (count or 1)


def _size_told(memory: re.Match[str], after: str, found: CardName) -> int | None:
    """Return the size beside a name; none that is the host's, or that a comma parts from another card."""
    size = int(memory[1]) * GIB
    if _OF_THE_HOST.match(after, memory.end()) or _is_of_no_such(size, found):
        return None
    return None if "," in memory[0] and _is_of_another(size, found) else size


def _size_in(name: str, found: CardName) -> int | None:
    """Return the memory that a name tells; none where that card's own is another: a GH200 480GB has 96 GB."""
    size = parse_size(name)
    return None if size is None or _is_of_another(size, found) else size


def _is_of_another(size: int, found: CardName) -> bool:
    """True for a size in bytes that is not the one on record for a card."""
    known = found.row.memory_gib if found.row else None
    return known is not None and abs(size / GIB - known) > 0.1 * known


def _is_a_card(gpu: Gpu, named: CardName | None) -> bool:
    """True but for a mere size beside a card's name that no such card has: the machine's memory."""
    return not (named and gpu.name is None and _is_of_no_such(gpu.memory_total_bytes or 0, named))


def _is_of_no_such(size: int, found: CardName) -> bool:
    """True for a size in bytes that is none of such a card, rebuilt ones included."""
    return found.row is not None and size > _REBUILT * (found.row.memory_gib or math.inf) * GIB


def _count_told(before: str, after: str) -> tuple[int | None, bool]:
    """Return how many cards the words beside a name tell, and whether they can only speak of cards."""
    if match := _COUNT_BEFORE.search(before):
        return _number(match[1]), _NUMBER_OF_CARDS.search(before) is not None
    of_cards = _CARDS_AFTER.match(after) is not None
    if match := _SPOKEN_BEFORE.search(before):
        return _number(match[2] or match[1].lower()), of_cards
    behind = _COUNT_BEHIND.match(after)
    return (_number(behind[1]), True) if behind else (None, of_cards)


def _number(told: str) -> int:
    return max(1, _NUMERALS.get(told) or min(int(told), 64))


def parse_capability(text: str) -> ComputeCapability | None:
    """Return the compute capability told as `sm_75`, `compute capability 7.5` or `(7.5)`."""
    match = _CAPABILITY.search(text) or _BARE_CAPABILITY.search(text)
    if match is None:
        return None
    try:
        return ComputeCapability.parse(match[1])
    except ValueError:
        return None


def complete_name(names: Sequence[str | None], stem: str) -> str | None:
    """Return the one full name among `names` that a shortened `stem...` begins, or None."""
    full = {name for name in names if name and name.startswith(stem)}
    return full.pop() if len(full) == 1 else None


def _parts(text: str) -> list[tuple[int, str]]:
    text = text.strip().strip("`*\"'[]").strip()[:600]
    text = " ".join(text.split())
    pieces = re.split(r"\s?[,;+]\s?(?![^()]{0,200}\))| and | / |\\n", text)
    parts: list[tuple[int, str]] = []
    for piece in pieces:
        piece = re.sub(r"^(?:GPU|cuda)\s?\d{0,3}\s?:(?:\d+\s)?\s*", "", piece.strip("'\" "))
        if match := _COUNT.search(piece):
            parts.append((_count(match), piece[match.end() :]))
        elif match := _COUNT_AFTER.search(piece):
            parts.append((_count(match), piece[: match.start()]))
        elif piece:
            parts.append((1, piece))
    return parts


def _count(match: re.Match[str]) -> int:
    return max(1, min(int(match[1] or match[2]), 256))


def _parse_one(text: str, source: str, cards: CardNames) -> Gpu | None:
    name, known = _name_in(text, cards), cards.find_one(text)
    memory = parse_size(text)
    if memory and known and _is_of_no_such(memory, known):
        memory = None
    capability = parse_capability(text)
    if name is None and memory is None and capability is None:
        return None
    return Gpu(
        0,
        source,
        name=name,
        compute_capability=capability,
        memory_total_bytes=memory,
    )


def _name_in(text: str, cards: CardNames) -> str | None:
    """Return the card's name: of the known name and what has the shape of one, the longer."""
    known = cards.find_one(text)
    shape = _NAMED.search(text)
    if known is None or (shape and shape.start(1) <= known.start and known.end <= shape.end(1)):
        return _tidy(shape[1]) if shape else None
    return _written(text, known)


def _written(text: str, found: CardName) -> str:
    """Return the name as the text has it, a size included; in place of a bare number, the card's own."""
    name = _tidy(text[found.start : found.end])
    return found.row.name if name.isdigit() and found.row else name


def _tidy(name: str) -> str:
    name = name if ")" in name else name.replace("(", "")
    return re.sub(r"\s+", " ", name).strip(" -_")
