"""Where a text holds secrets: as it stands, escaped, in a table's cells, encoded, broken over lines."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from envdoctor.bundling.drawn import find_drawn
from envdoctor.bundling.labels import find_labelled, find_with_labels
from envdoctor.bundling.secret_formats import find_formats
from envdoctor.bundling.secret_frames import find_headers, find_private_keys, find_urls
from envdoctor.bundling.secret_values import is_assignment, is_continuation, is_drawn, is_mixed
from envdoctor.bundling.sought import Searched
from envdoctor.bundling.spans import Span
from envdoctor.bundling.views import View, cells, decoded, joined

_WRAPPED_WIDTH = 40
_TERMINAL_WIDTHS = frozenset((79, 80, 100, 120, 132))
_BOX_SIDES = frozenset("\u2502\u2503\u2551")


def find_secrets(searched: Searched) -> Iterator[Span]:
    """Find every secret, however it is written."""
    text = searched.text
    yield from find_private_keys(text)
    formats = list(find_formats(searched))
    yield from (span for _, span in formats)
    yield from _find_in_context(searched)
    yield from find_encoded(text)
    for view in (decoded(text), cells(text)):
        if view is not None:
            for span in (*_find_plain(view.text), *find_encoded(view.text)):
                yield from spread(view, span)
    if (view := joined(text)) is not None:
        yield from _find_wrapped(text, view, {span.start for entry, span in formats if entry.fixed})


def _find_plain(text: str) -> Iterator[Span]:
    searched = Searched(text)
    yield from (span for _, span in find_formats(searched))
    yield from _find_in_context(searched)


def _find_in_context(searched: Searched) -> Iterator[Span]:
    yield from find_labelled(searched)
    yield from find_headers(searched)
    yield from find_urls(searched)
    yield from find_drawn(searched.text)


def spread(view: View, span: Span) -> Iterator[Span]:
    """Return the spans that a span of a view is made of: the first stands for all, the others vanish."""
    first, *rest = view.pieces(span.start, span.end)
    yield Span(*first, span.kind, span.value or view.text[span.start : span.end])
    yield from (Span(*piece, "") for piece in rest)


_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_PAIR = re.compile(r"[^\s:]{1,64}:(?P<v>\S{8,})")
_URLSAFE = str.maketrans("-_", "+/")
_TRIED = 16
_LEAST_DRAWN = 16


def find_encoded(text: str) -> Iterator[Span]:
    """Find base64 of a text that holds a secret, or is one."""
    for match in _BASE64.finditer(text):
        plain = _decode_base64(match[0])
        if plain and (_is_whole_secret(plain) or any(True for _ in _find_plain(plain))):
            yield Span(*match.span(), "secret")


def _decode_base64(run: str) -> str:
    body = run.rstrip("=").translate(_URLSAFE)
    if not _is_text(_decode_bytes(body[:_TRIED])):
        return ""
    raw = _decode_bytes(body)
    return raw.decode("ascii") if _is_text(raw) else ""


def _decode_bytes(body: str) -> bytes:
    try:
        return base64.b64decode(
            body[: len(body) - len(body) % 4] + _padded(body[len(body) - len(body) % 4 :])
        )
    except (ValueError, binascii.Error):
        return b""


def _padded(rest: str) -> str:
    return rest + "=" * (-len(rest) % 4) if len(rest) > 1 else ""


def _is_text(raw: bytes) -> bool:
    return bool(raw) and raw.isascii() and all(byte >= 32 or byte in b"\t\r\n" for byte in raw)


def _is_whole_secret(plain: str) -> bool:
    plain = plain.strip()
    pair = _PAIR.fullmatch(plain)
    return is_drawn(plain, _LEAST_DRAWN) or bool(pair and is_drawn(pair["v"]))


def _find_wrapped(text: str, view: View, settled: set[int]) -> Iterator[Span]:
    """Find the secrets of `view`, `text` with its lines joined, that a line break parts.

    Where a token of known length begins, one of `settled`, no longer one is sought.
    """
    searched = Searched(view.text)
    formats = list(find_formats(searched, frozenset(view.starts)))
    for span in (span for entry, span in formats if entry.fixed):
        if view.is_split(span.start, span.end):
            settled.add(view.pieces(span.start, span.end)[0][0])
            yield from spread(view, span)
    labelled = list(find_with_labels(searched))
    for label, span in labelled:
        if view.is_split(label.start, label.end) and not view.is_split(span.start, span.end):
            yield from spread(view, span)
    free = [span for entry, span in formats if not entry.fixed]
    framed = (*find_headers(searched), *find_urls(searched))
    for span in (*free, *(span for _, span in labelled), *framed):
        yield from _broken(text, view, span, settled, _goes_on)
    for span in find_drawn(view.text):
        yield from _broken(text, view, span, settled, _is_cut)


Judge = Callable[[str, list[tuple[int, int]], str, str], bool]


def _broken(text: str, view: View, span: Span, settled: set[int], judge: Judge) -> Iterator[Span]:
    if view.is_split(span.start, span.end) and view.pieces(span.start, span.end)[0][0] not in settled:
        # What does not go on over a break is judged in the text as it stands, not with the next line.
        trimmed = _trim(text, view, span, judge)
        if view.is_split(trimmed.start, trimmed.end):
            yield from spread(view, trimmed)


def _trim(text: str, view: View, span: Span, judge: Judge) -> Span:
    # A value of unknown length goes on over a break only as long as the next line reads like its rest,
    # or as the lines are cut at one width.
    pieces = view.pieces(span.start, span.end)
    end = span.start
    for i, (start, stop) in enumerate(pieces):
        if i and not judge(text, pieces[:i], text[start:stop], text[stop : stop + 2]):
            break
        end += stop - start
    return Span(span.start, end, span.kind)


def _goes_on(text: str, before: list[tuple[int, int]], piece: str, following: str) -> bool:
    digits = piece.isdigit() and text[slice(*before[-1])].isdigit()
    return digits or _is_cut(text, before, piece, following) or is_continuation(piece, following)


def _is_cut(text: str, before: list[tuple[int, int]], piece: str, following: str) -> bool:
    """True where lines end at one width, a terminal's, or a box's side."""
    widths = [stop - 1 - text.rfind("\n", 0, start) for start, stop in before]
    start, stop = before[-1]
    if widths[-1] < _WRAPPED_WIDTH or is_assignment(piece):
        return False
    if piece.isdigit() and following[:1] != ":":
        return True
    if not is_mixed(text[start:stop]):
        return False
    return (
        widths[-1] in widths[:-1]
        or (widths[-1] in _TERMINAL_WIDTHS and text[stop : stop + 1] == "\n")
        or text[stop : stop + 2].strip() in _BOX_SIDES
    )
