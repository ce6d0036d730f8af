"""Exceptions in a paste: each with its frames, chained ones joined, and the signatures met in its lines.

Tracebacks come plain, re-laid by Rich or IPython, behind a rank's or a logger's prefix, cut at either end.
Here their grammar is read; which of them are explained is for the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from envdoctor import lazy_re as re
from envdoctor.facts import MOOD, ErrorSeen, Frame
from envdoctor.pastes.moods import DENIED, PRINTED, SUPPOSED, mood_of
from envdoctor.pastes.sightings import Paste, Sighting, fenced_lines
from envdoctor.pastes.symptoms import Sight, met_within

HEADER = "Traceback (most recent call last)"
FRAMES = 400
"""Lines of a traceback that are read."""
KEPT_FRAMES = 40
MESSAGE_LINES = 12
BESIDE = 12
"""Spaces after which a line quotes no code any more: two lines of a terminal were joined."""
_BLANK = 3
"""Lines within which a message begins that opens with empty ones."""
ERRORS = 64
"""Errors kept of one paste: the last ones decide."""

_FRAME = re.compile(r'^\s*File "?([^"\n]{1,400}?)"?, line (\d{1,7})(?:, in(?: ([^\n]{1,200}))?)?$')
_TORN_FRAME = re.compile(r'^\s*([^"\n]{1,400}\.py)", line (\d{1,7}), in ([\w<>.]{1,120})$')
"""A frame whose head an excerpt left out, with part of its path."""
_BOXED_FRAME = re.compile(r"^[^\w/~.\\]{0,6}(\S[^:|\n]{0,300}\.py):(\d{1,7})[,:]? in ([\w<>.]{1,120})")
_CELL_FRAME = re.compile(
    r"^\s*File \[?([^\s():,]{1,400}(?:\.py|>)):(\d{1,7})(?:\]?\)?,? in ([\w<>.]{1,120})|$)|"
    r"^\s*([^\s(),]{1,400}\.py) in ([\w<>.]{1,120})(?:\(|$)"
)
_OPENS = ("-packages", ".py in ", '.py", line ')
"""One of these stands in a frame that opens a traceback without a head."""
_HALF_FRAME = re.compile(r'^\s*File "([^"\n]{1,400}\.py)",?$')
"""A frame of which a cut text has no line any more."""
_PYTHONS = re.compile(r"[/\\]python3?\.?\d{0,2}[/\\](?!site-packages|dist-packages)|^<frozen |^<string>")
"""A file of Python's own."""
_ARROW = re.compile(r"^\s*-{1,8}> \d{1,7}\s(.{1,400})")
_STATEMENT = re.compile(
    r"\s{0,3}(?:(?:return|raise|import|from|if|elif|for|while|with|assert|yield|await|async|del|not|lambda) |"
    r"[A-Za-z_][\w.]{0,120}(?:\[[^\]]{1,80}\])?(?:\(|(?:, ?\w{1,60}){0,6} ?[-+*/|@]?=(?!=)))"
)
"""How a line of code begins; text that follows a frame is told from it."""
_NUMBERED = re.compile(r"^\s*\d{1,7}\s")
_LINKED = re.compile(r"\[([^\[\]\n]{1,400})\]\(https?://[^()\n]{1,200}\)")
_RAISED = re.compile(r"^((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,80})(?::[ \t]?(.{0,1000}))?$")
_SUFFIX = r"(?:Error|Exception|Interrupt|Fault|Failure|Timeout|Unsupported|ExitException|OutOfMemory)"
_LOOSE = re.compile(
    rf"(?:^|[\s`'\"([\]|>,;，：；（【])((?:[A-Za-z_]\w{{0,60}}\.){{0,8}}[A-Z]\w{{0,60}}?{_SUFFIX}):"
    r"[ \t]{1,4}(\S.{0,1000})"
)
_QUALIFIED = re.compile(
    r"^[\s>`'\"]{0,4}((?:[a-z_]\w{0,60}\.){1,8}[A-Z]\w{0,80}|Exception): ([A-Za-z'\"<(].{0,1000})"
)
"""A class by its module and class name, or the plain one, at the head of a line, as Python prints it."""
_ALONE = re.compile(
    rf"^((?:[A-Za-z_]\w{{0,60}}\.){{0,8}}[A-Z]\w{{0,60}}?{_SUFFIX}|"
    r"(?:[a-z_]\w{0,60}\.){2,8}[A-Z]\w{0,60}): {0,8}$"
)
"""A class at the head of a line with nothing behind it: its message follows, or was left out."""
_ENDS_MESSAGE = re.compile(
    r"^(?:\S{1,60}: line \d{1,5}: .{0,80})?(?:Killed|Aborted|Terminated|Segmentation fault|Bus error)"
    r"(?: \(core dumped\))?\s{0,8}(?:\S.{0,120})?$|\b\d{1,3}%\|"
)
"""What a shell says of a process, and a progress bar: neither goes on with a message."""
_LOGGED = re.compile(
    r"[\[(]?(?:\d{4}-\d\d-\d\d[ T_]?\d\d:\d\d|\d\d:\d\d:\d\d\b)|(?:INFO|WARNING|DEBUG|ERROR)\b[ :\[]|"
    r"[IWEF]\d{4} \d\d:\d\d:"
)
"""How a logger's next line begins."""
_GLOG = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [\w.-]{1,60}:\d{1,5}\] ")
"""What a C++ library's logger writes, whole lines by themselves."""
_TORCH_WARNS = re.compile(r"(?:\[\w{1,12}\]: ?)?\[W\d{3,4}[^\]\n]{0,120}\] Warning: ")
"""How torch's compiled code warns: it goes on."""
_CODE = re.compile(r"^\s*(?:except|raise|return|if|elif|assert|class|def|import|from|#|with)\b")
_EDITOR = "Exception has occurred: "
_CRITICAL = re.compile(r"[^A-Za-z]{0,60}\[?CRITICAL\b")
_DIRECT = "The above exception was the direct cause"
_DURING = "During handling of the above exception"
_DIGITS = str.maketrans("0123456789", "0000000000")
_PREFIX = re.compile(
    r"^(?:\s{0,8}(?:\[rank\d{1,5}\]:|\([^()\n]{1,80}\)|\[[^\]\n]{1,60}\]:?|\d{1,5}:(?=\s)|"
    r"(?:ERROR|CRITICAL|INFO|WARNING|E\d{4}) [^\]\n]{0,60}\]|E(?=\s{3}))\s?){1,4}"
)


@dataclass(slots=True)
class _Raised:
    """One exception while it is read: the lines it covers, and how it hangs on the one before."""

    kind: str
    text: str
    line: int
    last: int
    frames: list[Frame] = field(default_factory=list)
    first: int = 0
    beside: str = ""
    cut: bool = False


def parse_errors(paste: Paste, sights: Sequence[Sight]) -> Iterator[Sighting]:
    """Yield each error that the paste shows, in the order of its lines.

    `sights` are the signatures met in the lines; an error names those within it, and one whose row calls it a
    fault is an error by itself where no exception covers it.
    """
    chains = list(_joined(paste.lines, list(_raised(paste.lines))))
    fenced = fenced_lines(paste.lines)
    moods = [_mood(paste.lines, chain, fenced) for chain in chains]
    told = [(chain, mood) for chain, mood in zip(chains, moods, strict=True) if mood != DENIED]
    found = [_error(paste, chain, sights, mood) for chain, mood in told]
    covered = {line for chain in chains for one in chain for line in range(one.first, one.last + 1)}
    faults = [sight for sight in sights if sight.line not in covered and _is_fault(paste, sight, sights)]
    plain = {sight.line for sight in faults if sight.pattern.fault != "logged"}
    for sight in faults:
        if sight.pattern.fault == "logged" and sight.line in plain:
            continue
        found.append(_fault(paste, sight, sights))
        plain.add(sight.line)
    found.sort(key=lambda error: error.line)
    yield from (Sighting("error", error) for error in found[-ERRORS:])


def _is_fault(paste: Paste, sight: Sight, sights: Sequence[Sight]) -> bool:
    """True for a line that tells a fault, and what a logger calls an error; torch goes on after its own.

    What is merely critical to it may be a notice: it is a fault beside words of trouble, or as the last line.
    """
    if sight.pattern.fault != "logged":
        return sight.pattern.fault not in ("", "said")
    if _TORCH_WARNS.match(paste.lines[sight.line]):
        return False
    troubled = (one for one in sights if one.pattern.fault == "said")
    return (
        not _CRITICAL.match(sight.text)
        or any(sight.line in (one.line, *one.again) for one in troubled)
        or not any(line.strip() for line in paste.lines[sight.line + 1 :])
    )


def _fault(paste: Paste, sight: Sight, sights: Sequence[Sight]) -> ErrorSeen:
    _, last = _message(paste.lines, sight.line, "", sight.text)
    met = met_within(sights, sight.line, last)
    kind = "said" if sight.captured.get(MOOD) == SUPPOSED else sight.pattern.fault
    source = paste.at("", sight.line)
    return ErrorSeen(sight.text, source, kind, line=sight.line + 1, symptoms=met)


def _mood(lines: Sequence[str], chain: Sequence[_Raised], fenced: frozenset[int]) -> str:
    """Return how a text speaks of an exception that stands on one line; what has frames was printed."""
    one = chain[0]
    if len(chain) > 1 or one.frames or one.first != one.line or one.kind not in lines[one.line]:
        return PRINTED
    line = lines[one.line]
    first = line.index(one.kind)
    return mood_of(line, first, min(len(line), first + len(one.text)), one.line in fenced)


def _titled(lines: Sequence[str]) -> str:
    """Return what a text's title says, which tells the message of a traceback that is cut off."""
    title = lines[0].lstrip("# ") if lines[0].startswith("# ") else ""
    return f"; the text's title: {title[:200]}" if title else ""


def _error(paste: Paste, chain: Sequence[_Raised], sights: Sequence[Sight], mood: str) -> ErrorSeen:
    root, end = chain[0], chain[-1]
    kind = "cut" if root.cut or not root.kind else "exception"
    return ErrorSeen(
        root.text + _titled(paste.lines) if root.cut else root.text,
        paste.at("traceback" if root.frames else "", root.line),
        "said" if mood == SUPPOSED else kind,
        exception=root.kind,
        line=root.line + 1,
        frames=tuple(_stack(chain)[-KEPT_FRAMES:]),
        ended=end.text if end is not root else "",
        symptoms=met_within(sights, min(root.first, end.first), max(root.last, end.last)),
        beside=root.beside,
    )


def _stack(chain: Sequence[_Raised]) -> list[Frame]:
    """Return the frames of a root; where all are Python's own, below those that it came out through."""
    found: list[Frame] = []
    for one in chain:
        found = [*one.frames, *found]
        if not all(_PYTHONS.search(frame.file) for frame in found):
            break
    return found


def _raised(lines: Sequence[str]) -> Iterator[_Raised]:
    index = 0
    while index < len(lines):
        line = lines[index]
        raised = None
        if HEADER in line:
            raised = _traceback(lines, index + 1, line[: line.index(HEADER)], index)
        elif (start := line.find('File "')) >= 0 and '", line ' in line:
            raised = _traceback(lines, index, line[:start].removesuffix(" ").removesuffix(" "), index)
        elif line.startswith(_EDITOR):
            raised = _in_editor(lines, index)
        elif any(mark in line for mark in _OPENS) and _frame(_bare(line, "")):
            raised = _traceback(lines, index, "", index)
        elif ": " in line and (match := _LOOSE.search(line) or _qualified(line)):
            raised = _loose(lines, index, match)
        elif line.rstrip().endswith(":") and (match := _ALONE.match(_bare(line, ""))):
            raised = _alone(lines, index, match[1])
        if raised is None:
            index += 1
            continue
        yield raised
        index = raised.last + 1


def _traceback(lines: Sequence[str], start: int, prefix: str, header: int) -> _Raised | None:
    """Return the exception that the frames from `start` on end in; its head or its end may be cut off.

    None for one that another interrupts before its end.
    """
    prefix = "" if prefix.strip(" -=+|\u256d\u2500").endswith(("Error", "Exception")) else prefix
    frames: list[Frame] = []
    end = header
    for index in range(start, min(len(lines), start + FRAMES)):
        if HEADER in lines[index]:
            return None
        if not prefix.strip() and _GLOG.match(lines[index]):
            continue  # another thread's, in between
        line = _bare(lines[index], prefix)
        if frame := _frame(line):
            frames.append(frame)
            end = index
        elif frames and (arrow := _ARROW.match(line)):
            frames[-1] = replace(frames[-1], code=arrow[1].strip()[:200])
            end = index
        elif frames and line.startswith("    ") and not _NUMBERED.match(line):
            frames[-1] = replace(frames[-1], code=frames[-1].code or _quoted(line))
            end = index
        elif (match := _RAISED.match(line)) and (
            _is_exception(match[1]) or (frames and _ends_it(match[1], match[2], index - end))
        ):
            text, last = _message(lines, index, prefix, line) if match[2] is not None else (match[1], index)
            return _Raised(match[1], text, index, last, frames, header)
        elif frames and index == end + 1 and _is_flat(lines[end], line) and not frames[-1].code:
            frames[-1] = replace(frames[-1], code=_quoted(line))
            end = index
    return _cut_off(lines[header], header, end, frames)


def _is_flat(frame: str, line: str) -> bool:
    """True for code below a frame whose indentation the page that it was copied from has lost."""
    return frame.startswith("File ") and bool(_STATEMENT.match(line))


def _in_editor(lines: Sequence[str], start: int) -> _Raised | None:
    """Return an exception as VS Code shows it: class, message, and the innermost frame first."""
    kind = lines[start].removeprefix(_EDITOR).split("(")[0].strip()
    ends = range(start + 1, min(len(lines), start + MESSAGE_LINES))
    first = next((index for index in ends if _frame(lines[index])), None)
    raised = _traceback(lines, first, "", start) if first and kind else None
    if raised is None:
        return None
    text = f"{kind}: {' '.join(line.strip() for line in lines[start + 1 : first])}"[:600]
    return replace(raised, kind=kind, text=text, line=start, frames=raised.frames[::-1], cut=False)


def _cut_off(line: str, header: int, last: int, frames: list[Frame]) -> _Raised:
    """Return what is left of a traceback whose last line is missing; IPython names the class on top."""
    named = re.search(rf"([A-Z]\w{{1,80}})(?:\s{{2,80}}|(?<=Error) ){re.escape(HEADER)}", line)
    code = f" at `{frames[-1].code}`" if frames and frames[-1].code else ""
    text = f"{named[1] if named else 'a traceback'}{code}: cut off before its message"
    return _Raised(named[1] if named else "", text, header, last, frames, header, cut=True)


def _is_exception(name: str) -> bool:
    return bool(re.search(rf"{_SUFFIX}\w{{0,20}}$|Exit$|Iteration$|Warning$", name))


def _is_class(name: str) -> bool:
    """Whether a name is written as classes are: not a level, a command or an abbreviation."""
    last = name.rpartition(".")[2]
    return last[:1].isupper() and not last.isupper()


def _ends_it(name: str, message: str | None, below: int) -> bool:
    """Whether a line that is not indented, `below` the last frame, is the exception, whatever its name.

    One without a message is so right below alone, where nothing else can stand.
    """
    if message is None:
        return below == 1 and _is_class(name) and ("." in name or not name.istitle())
    return "." in name or _is_class(name)


def _quoted(line: str) -> str:
    """Return the code that a line below a frame quotes, without what stands beside it, as marks do."""
    return line.strip().partition(" " * BESIDE)[0][:200]


def _frame(line: str) -> Frame | None:
    if match := _FRAME.match(line):
        return Frame(match[1].replace("**", ""), int(match[2]), "".join((match[3] or "").split()[:1]))
    if '.py", line ' in line and (match := _TORN_FRAME.match(line)):
        return Frame(match[1], int(match[2]), match[3])
    if match := _HALF_FRAME.match(line):
        return Frame(match[1], 0, "")
    if (".py" in line or "File <" in line) and (match := _CELL_FRAME.match(line)):
        return Frame(match[1] or match[4], int(match[2] or 0), match[3] or match[5] or "<module>")
    if ".py:" in line and (match := _BOXED_FRAME.match(line)):
        return Frame(match[1].strip(), int(match[2]), match[3])
    return None


def _bare(line: str, prefix: str) -> str:
    """Return a line without what a logger or a launcher put before each line of the traceback."""
    if _bears(line, prefix):
        return line[len(prefix) :]
    if "](http" in line:  # as a notebook's page is copied
        line = _LINKED.sub(r"\1", line)
    return _PREFIX.sub("", line) if line[:1] in "[(EICW 0123456789" else line


def _bears(line: str, prefix: str) -> bool:
    return bool(prefix) and line[: len(prefix)].translate(_DIGITS) == prefix.translate(_DIGITS)


def _message(lines: Sequence[str], index: int, prefix: str, first: str) -> tuple[str, int]:
    """Return the exception's line with what continues it, and the last line it covers."""
    parts, last = [first.strip()], index
    borne = bool(prefix.strip()) and _bears(lines[index], prefix)
    for following in range(index + 1, min(len(lines), index + MESSAGE_LINES)):
        line = _bare(lines[following], prefix).strip()
        if borne and not _bears(lines[following], prefix):
            break
        if not line and len(parts) == 1 and parts[0].endswith(":") and following < index + _BLANK:
            continue  # a message that begins with blank lines
        if not line or HEADER in line or line.startswith((_DIRECT, _DURING, "```", "+-")) or _frame(line):
            break
        if (": " in line and _is_exception(line.partition(":")[0][-80:])) or _ENDS_MESSAGE.search(line):
            break
        if _LOGGED.match(line):
            break
        parts.append(line)
        last = following
    return " ".join(parts)[:600], last


def _qualified(line: str) -> re.Match[str] | None:
    """Return the class that a line opens with by its module, of whatever name, and what it says."""
    match = _QUALIFIED.match(_bare(line, "")) if "." in line or "Exception: " in line else None
    return match if match and _is_class(match[1]) and " " in match[2] else None


def _loose(lines: Sequence[str], index: int, match: re.Match[str]) -> _Raised | None:
    """Return the exception that a line names outside of a traceback."""
    line = match.string
    if _CODE.match(line):
        return None
    prefix = line[: match.start(1)]
    each = index > 0 and _bears(lines[index - 1], prefix)
    text, last = _message(lines, index, prefix if each else "", line[match.start(1) :])
    return _Raised(match[1], text, index, last, [], index, line[: match.start(1)].strip()[-200:])


def _alone(lines: Sequence[str], index: int, kind: str) -> _Raised:
    """Return an exception whose line holds its class alone; cut off where no message follows."""
    below = next((at for at in (index + 1, index + 2) if at < len(lines) and lines[at].strip()), index)
    following = _bare(lines[below], "").strip() if below > index else ""
    if below > index + 1 and "." in kind and following[:1].isupper():  # openai's own, after an empty line
        return _Raised(kind, f"{kind}: {following}"[:600], index, below, [], index)
    if below == index + 1 and following[:1].isalnum() and not _LOGGED.match(following):
        text, last = _message(lines, index, "", f"{kind}:")
        return _Raised(kind, text, index, last, [], index)
    return _Raised(kind, f"{kind}, without a message", index, index, [], index, cut=True)


def _joined(lines: Sequence[str], raised: Sequence[_Raised]) -> Iterator[list[_Raised]]:
    """Put each exception to the chain it belongs to, the root first."""
    chain: list[_Raised] = []
    for one in raised:
        if chain and _grouped(lines, chain[-1], one):
            chain.insert(0, one)
            continue
        if chain and _chained(lines, chain[-1], one):
            chain.append(one)
            continue
        if chain:
            yield chain
        chain = [one]
    if chain:
        yield chain


def _chained(lines: Sequence[str], before: _Raised, after: _Raised) -> bool:
    between = lines[before.last + 1 : min(after.first + 1, before.last + 8)]
    return any(_DIRECT in line or _DURING in line for line in between)


def _grouped(lines: Sequence[str], group: _Raised, one: _Raised) -> bool:
    """Whether the exception is the first of those that the group before it holds."""
    between = lines[group.last + 1 : one.first + 1][:3]
    return group.kind.endswith("ExceptionGroup") and any("+-+-" in line for line in between)
