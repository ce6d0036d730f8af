"""Running text: of it only versions, cards, settings and words of trouble are read, and that is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.facts import NOT_JUDGED, REPORTED, ErrorSeen
from envdoctor.pastes.sightings import HEAD, Paste, Sighting, apart_from_blocks
from envdoctor.pastes.symptoms import Sight, met_within
from envdoctor.pastes.warned import LEAST, is_logged
from envdoctor.patterns import row_pattern

_NO_PERSON = re.compile(
    r"\s*(?:[|+$>({\[\"'<@#]|```|`[^`]{0,400}(?:`\W{0,4}|)$|\d{2,4}[-:/. ]|[A-Z]{4,8}\b|(?:INFO|WARN|DEBUG)|"
    r"(?:[*-] )?\w[\w .()?/-]{0,60}:(?: |$)|\S+==|.{0,40}\.{4}|"
    r"[IWEF]\d{4} \d\d:\d\d:\d\d|raise [A-Z]\w+\(|def \w+\(|except [A-Z]\w+|"
    r"Copy-and-paste the text|Checking that the|During handling of|The above exception)"
)
"""How lines of logs, tables, prompts, listings, programs and reports of tools begin."""
_BESIDE = re.compile(
    r"\s*\((?=[A-Za-z\d])(?!\w{1,40}(?:\)| pid=))|"
    r"[A-Za-z][\w .()?/-]{0,60}: (?=.{0,200}\b(?i:missing|not|never|without|fails|failed|broken|wrong)\b)"
)
"""What stands before a person's words beside a sentence: a bracket, a label before words of a lack."""
_SOUND = re.compile(
    r"(?i)\b(?:no|without(?: an(?:y|other))?|zero|0|avoid(?:s|ing)?|fix(?:es|ed)?) (?:[\w-]{1,20} )?"
    r"(?:errors?|failed|failures?|crashes|problems?|issues?|conflicts?|warnings?|bugs?|exceptions?)\b"
    r"(?:(?:,| or| and| nor){1,2} (?:errors?|failures?|warnings?|exceptions?)\b){0,3}|"
    r"\b(?:errors?|failed|failures?|failed requests|exceptions?)\b[\"']?\s{0,4}[:=|]\s{0,40}"
    r"(?:0(?![\d.])|none|false|null)|"
    r"\b(?:not|n['’]t|never) (?:meet|have|see|get|hit|face|encounter)\w{0,3} (?:the |this |that |any )?"
    r"(?:same )?(?:problem|issue|error)s?\b|如果[^,，。]{0,16}?(?:错误|报错|失败|异常|崩溃|问题)|"
    r"\btrial[- ]and[- ]error|\berror (?:bars?|correction|handling|rates?|margins?)|\becc[. _]errors?|"
    r"\bis (?:this|that|it) (?:really )?a problem\b|"
    r"\bdescribe the (?:bug|issue|problem)\b|\bare you seeing the (?:problem|issue) on\b|"
    r"\bcould not collect\b|\brelated to a problem\b|"
    r"\busing the latest cached version of the (?:dataset|module)\b[^\n]{0,300}|"
    r"\b(?:fail|error)[- ](?:fast|safe|free|over)\b|\b(?:bug|issue)[- ](?:fix|tracker|report|template)"
)
"""Words of trouble where there is none."""
_OF_A_MODEL = re.compile(
    r"(?i)[\s>*#-]{0,6}(?:prompt: .{0,200}?)?"
    r"(?:(?:generated|output|completion|response)[ _]?(?:text|tokens)?|assistant|answer|reply|bot|"
    r"model(?:'s)? (?:output|answer|response)|模型(?:输出|回答|回复)|回答)\W{0,4}[:：]\W{0,3}['\"“‘「]"
)
"""How a line begins that quotes what a model wrote: its words are no person's."""
_REPORTS = re.compile(
    r"(?i)\b(?:get|gets|getting|got|see|seeing|saw|receiv\w{1,3}|encounter\w{0,3}|observ\w{1,3}|hits?|"
    r"r[au]n(?:ning)? into|"
    r"fac(?:e|es|ed|ing)|throw[sn]?|threw|raise[sd]?|returns?|returned|report(?:s|ed)|gives?|gave|have|"
    r"having|caus(?:es|ed|ing)|"
    r"had|following|this|below|same)\b[^.?!]{0,50}?"
    r"\b(?:errors?|exceptions?|tracebacks?|failures?|crash(?:es)?)\b|"
    r"\berrors? (?:when|while|during|after) \w{2,20}ing\b|\bis(?:n['’]?t| not) downloaded\b|"
    r"\bis_available(?:\(\))?\W{0,3}(?:is |=+ ?|returns )?false\b|\bnot (?:install|load|work|start|runn|"
    r"compil|import|build|train|sav|respond|download|detect|recogni[sz]|stopp)ing\b|"
    r"\b(?:have|having|had|hits?|r[au]n into|encounter\w{0,3}|fac(?:e|es|ed|ing)) (?:\w{1,12} ){0,3}"
    r"(?:troubles?|problems?|issues?)\b|"
    r"(?<!not )(?<!never )(?<!to )(?<!can )\b(?:fails|failed|failing|crash(?:es|ed|ing)|hang(?:s|ing)|hung|"
    r"stuck\w{0,2}|froze|freezes|errors out|is broken|broke|breaks|(?:is|are) lost|"
    r"(?:was|gets?|got|being) killed)\b|"
    r"\b(?:is|are|was|were|do|does|did|ha[sd])(?:n['’]?t| not) (?:\w{1,12} ){0,2}?"
    r"(?:work|start|load|r[au]n|launch|respon|recogni|detect|us[ei]|import|install|compil|build|train|"
    r"sav|resum|converg|finish|complet|show)\w{0,6}|"
    r"\b(?:can(?:not|['’]?t| not)|could(?:n['’]?t| not)|(?:un|not )able to) "
    r"(?:be (?:loaded|found|used|installed|imported|opened|run|started|initiali[sz]ed|built)|get|run|"
    r"start|load|use|install|import|train|see|detect|build|compile|launch|open|connect|access|download|"
    r"resume|"
    r"save|make|create|allocate|initiali[sz]e|locate|find "
    r"(?!any|specific|info|the (?:part|code|place|reason|doc|line|right)|"
    r"(?:it|this|that|them) (?:anywhere|in (?:the |your |this )?(?:code|paper|repo|doc|readme|script)))|"
    r"fine-?tune|infer)\b|"
    r"(?-i:\b[A-Z][a-z]\w{1,40}(?:Error|Exception)\b)|"
    r"\b(?:very|too|much|extremely|so|super|painfully|terribly|incredibly|really|insanely) slow|"
    r"\bis missing\b|\bis incompatible with\b|\bnot exist\b|\b(?:do|does|did)(?:n['’]?t| not) (?:contain|"
    r"includ|return|"
    r"produc|appear|exist|generat|stop|answer|match|releas|giv)\w{0,3}\b|"
    r"\b(?:is|are|was|were|runs?|running|became|becomes|seems?) (?:\w{1,12} ){0,2}(?:slow(?:er)?|wrong|"
    r"incorrect|worse)\b|"
    r"\bcaus\w{1,3} [^.?!]{0,40}?\bto (?:crash|freeze|hang|reboot|restart|die|fail)\b|"
    r"^\W{0,4}crash(?:es|ed)? (?:with|when|while|on|at|during|after|in)\b|"
    r"\bslower (?:than|on)\b|\b(?:low|poor|bad|weird|strange|terrible) (?:\w{1,12} ){0,2}performance\b|"
    r"\b(?:generation|output|model|answer) (?:\w{1,12} )?(?:loops|repeats)\b|"
    r"\bnever (?:stop|end|finish|return|start|match|work|load|complet)(?:s|ed|es)?\b|"
    r"\b(?:sits|stands|waits) (?:there|for (?:\w{1,12} )?(?:hours|minutes|ever))\b|"
    r"\bkills (?:it|the (?:job|run|process))\b|"
    r"\bcauses? (?:\w{1,12} ){1,4}to (?:crash|hang|freeze|reboot)\b|"
    r"^\W{0,4}(?:crash|hang|freeze|segfault) (?:with|when|on|in|after|while|at|during)\b|"
    r"\bkeeps (?:generating|repeating|loading|restarting|waiting)\b|\bi (?:would have |had )?expected\b|"
    r"\b(?:gives?|tells?|shows?|prints?|returns?|says)(?: me)? false\b|"
    r"\b(?:produc|giv|return|generat|output|yield)\w{1,3} (?:the )?(?:same|identical|wrong|incorrect|"
    r"random|empty|bad)\b|"
    r"\bi (?:do not|don['’]?t|can['’]?t) understand why\b|\bsurprised? (?:me|that)\b|"
    r"\bunexpected (?:behaviou?r|result|output)\b|"
    r"\b(?:seems?|appears?) (?:to be )?not |\bnot (?:detected|recogni[sz]ed)\b|"
    r"(?<!have )(?<!ve )(?<!had )\bnot found\b|(?<!no )(?<!any )(?<!out )\berrors?\W{0,3}$|"
    r"\bmemory (?:is|was|gets|has been) (?:\w{1,12} )?exceeded\b|"
    r"\btak(?:es|ing|e|en) (?:(?:too|so|very) (?:long|much)|ages|forever|hours|a (?:very )?(?:long time|"
    r"lot of time))|"
    r"\bcomplain\w{0,3}\b|\bdie[sd]\b|\bwon['’]?t (?:load|start|run|work|fit)\b|\bmessage that\b|"
    r"\b(?:tells me|(?<!paper )(?<!readme )(?<!docs )(?<!documentation )(?<!article )says) "
    r"(?:that|it|the|an?|what)\b|\bclimbs\b|"
    r"(?:\b|_)(?:loss|grad_norm)\b[^.?!]{0,20}\bnan\b|"
    r"(?:\b|_)loss ?(?:[^.?!]{0,24}\bis |is |of |becomes |stays |goes to |always |all |= ?|: ?){1,2}"
    r"0(?:\.0{1,8})?\b|"
    r"\b(?:garbage|gibberish|garbled|nonsense)\b|\b(?:is|are|gets?) (?:cut(?: off)?|truncated)\b|"
    r"\bsame (?:problem|issue|error)\b|(?<![a-z])OOM(?![a-z])|"
    r"\b(?:go|goes|went|going|runs?|ran|running) out of (?:\w{1,8} )?memory\b|"
    r"报错|失败|崩溃|卡住|卡死|爆显存|无法|出现[^。？?]{0,24}?(?:错误|异常|问题|nan|为 ?0)|变成 ?nan|不收敛|"
    r"(?:经常|总是|一直|频繁)报|没反应|没有反应|不动了|不下降|没有下降|一直(?:卡|报|不动|是 ?0|为 ?0|加载不)"
)
"""Words by which a person tells of a failure that happened."""
_SUPPOSED = re.compile(
    r"(?i)\?\s*$|^\W{0,4}(?:\[[ xX]\]|if|whether|in case|how|what|which|"
    r"(?:can|could|would|should|is|are|does|do|will|may|question)(?!['’]t| not))\b|"
    r"\b(?:may|might|would|could(?!n?['’]t| not)|should|whether|avoid|prevent|unless|otherwise)\b|"
    r"\b(?:runs?|works?) (?:ok|fine|well|now)\b"
)
"""A question, what may come, a box of a form."""
OVER = re.compile(
    r"(?i)\b(?<!was )(?<!is )(?<!be )(?<!are )used to (?:get|have|see|fail|crash|hit|run into|happen|be)\b|"
    r"\b(?:years?|months?|weeks?) ago\b|\blast (?:year|month|week)\b|"
    r"\b(?:was|were|is|are|got|been|now) (?:now )?(?:fixed|solved|resolved|gone)\b|"
    r"\b(?:fix(?:ed|es)|solved|resolved) (?:by|it|this|that|the|my|our|in|with)\b|"
    r"^\W{0,6}(?:fix(?:ed|es)?|resolved?|solved|removed?)\b(?!.{0,200}\?)|\bno more [\"'`]|已经?解决|之前报错"
)
"""Words by which trouble is told that is over."""
_ASKING_TITLE = re.compile(
    r"(?i)# \W{0,3}(?:\[(?:usage|discussion|help)\]\W{1,3})?(?:\[?question\]?|how|what|which|where|any|"
    r"(?:can|could|is|are|does|do|should|will)(?!['’]t| not))\b"
)
_ASKS = re.compile(
    r"(?i)\b(?:how|what|which|why|where|who|whether|any(?:one|body|thing)?|is|are|does|do|did|can|could|should|"
    r"would|will|may)\b(?!['’]t| not)"
)
"""A word by which a sentence asks."""
_ASKS_AT_END = re.compile(
    r"(?i)\s?[,;:–-]\s(?:and |so |but )?(?:how|what|which|why|where|any|is|are|does|do|can|could|should)\b"
    r"[^,;:?]{0,120}\?$"
)
"""How a sentence that tells something ends in a question."""
_THANKS = re.compile(r"(?i)\W*(?:thanks?(?: you)?|thx|(?:(?:please|pls|any) )?help(?: please| pls| me)?)\b")
_CLAUSE = re.compile(r"(?<=[.!?])\s{1,4}|(?<=[\u3002\uff1f])")
_BOX = re.compile(r"\s*(?:[-*] \[|[*_#<])")
"""A box of a form, a heading, a remark of it."""
_PIN = re.compile(r"\s*[\w.\[\],-]{1,100}==")
_LABELLED = re.compile(
    r"\s*[-*] (?i:(?!error|problem|issue|bug|trouble))[A-Za-z`][\w ./()`-]{1,40}: [^.!?\n]{1,40}$"
)
"""How a report of an environment tells a value: `- Data directory: not detected`."""
_OF_A_BUG = re.compile(
    r"(?i)#{1,5} \W{0,4}(?:\w{1,12} ){0,2}?(?:describe the (?:bug|issue)|bug description|to reproduce|"
    r"reproduction|expected behaviou?r|actual behaviou?r|what is the issue|what happened|"
    r"problem description|error (?:message|log|output))|"
    r"(?:describe the bug|to reproduce|expected behaviou?r)\W{0,4}$"
)
"""Headings of the forms in which a failure is reported."""
_POST = 12
"""Lines of the longest text without a title that is taken for a person's."""
_OPENING = 3
"""Lines of which one is a sentence where a person opens a text."""
_OF_A_PROCESS = r"(?:\([A-Za-z][\w -]{0,40} pid=\d{1,9}[^)\n]{0,24}\)|\[(?:rank|default|worker)?\d{1,4}\]:?)"
"""How programs of several processes begin a line."""
_LOGGED = re.compile(
    r"(?:\d{4}-\d\d-\d\d[ T][\d:.,]{8,15}[\s|-]{0,4})?"
    rf"[\s\[]{{0,4}}(?:{_OF_A_PROCESS}\s{{0,4}})?[\s\[]{{0,4}}(?:WARN(?:ING)?|INFO|DEBUG|[IW]\d{{4}})\b"
)
_OF_PROGRAM = re.compile(r"\w(?:Warning|WARNING): |^\s{0,8}(?:\d{1,3}%\||/|[A-Z]:\\)")
_WARNS = re.compile(
    r"(?i)^\W{0,8}(?:[\w.]{1,40}[: -]{1,3})?\[?warn(?:ing)?\b|\b(?:no effect|(?:is|are|be) ignored)\b"
)
"""A line that a program goes on after."""
_VALUE = re.compile(
    r"(?i)^\W{0,6}[\w./() -]{1,40}[:=]\s{0,8}\W?(?:not (?:found|installed|detected|seen)|missing)\W{0,3}$"
)
"""What a report of a machine has of a thing that it lacks."""
_QUOTED_CODE = re.compile(
    r"(?i)^\W{0,4}please\b|^\s*(?:raise|assert|except|def|class|if|elif|return|import|from|self\.)\b"
)
_ENDS_IN = re.compile(r"^\s*(?:import|from) [^\n:]{2,200}: [A-Z]\w{2,40}(?:Error|Exception)\b")
"""An import with the exception that it ends in: `import a -> import b: ImportError`."""
_WISHED = re.compile(
    r"(?i)^\W{0,4}(?:(?:feature|enhancement|proposal|rfc|docs?|documentation|chore|refactor|question)\b|"
    r"(?:we )?(?:now )?"
    r"(?:add|support|improve|allow|document|explain|make|show|provide|implement|handle|retry|fix|avoid|introduce)"
    r"(?:e?[ds]|s)?\b)"
)
"""How a wish, a plan or what was done begins: what goes wrong in it is its object."""
_ASKED_FOR = re.compile(
    r"(?i)(?:please )?(?:add (?:support|an? |the |more |better |error|retr)|allow |implement |introduce |"
    r"improve |provide |handle |retry |document )"
)
"""How a wish is put, whatever goes wrong in what is wished for."""
_SPEAKS = re.compile(r"(?i)\s*(?:i|we|my|our|hi|hello|hey)\b[ ,]")
"""How a person begins a sentence that may hold a colon."""
_WORDS, _SHARE = 6, 0.6
_CODE = re.compile(
    r"\s*(?:[#$>%@{}()\[\]\\|]|-{1,2}\w|(?:import|from|def|class|if|elif|else|for|while|return|raise|"
    r"print|with|try|"
    r"except|sudo|pip3?|python3?|docker|export|cd|ls|cat|echo|git|curl|wget|conda|uv)\b|[\w.\[\]]{1,60} ?=)|"
    r".*[\\{(,;]\s*$"
)
"""How a line of code or a command begins or ends."""
_PRINTS = re.compile(
    r"(?i)\b(?:not found|nothing to|not (?:a )?valid|invalid|must (?:be|have|match)|no such|unknown|"
    r"unable to|not in|"
    r"no \w+ (?:left|available|found)|too (?:large|small|old|many|few))\b"
)
"""Words by which a program tells why it stops, though no trouble by themselves."""
_PRINTED = 4
"""Plain words of the shortest sentence that a program prints."""
_IDEOGRAPHS = 10


def without_soundness(text: str) -> str:
    """Return a text without its words of trouble where there is none: `no errors`, `error rate`."""
    return _SOUND.sub("", text)


def parse_told(
    paste: Paste, lines: Sequence[str], told: Sequence[tuple[int, str]], sights: Sequence[Sight]
) -> Iterator[Sighting]:
    """Yield the first of the lines that hold words of trouble, one that reports a failure before others.

    `lines` are the paste's before recognised words were taken out.
    """
    if not told:
        return
    index, line = next(_reporting(lines, told), told[0])
    met, text = met_within(sights, index, index), " ".join(line.split())[:400]
    yield Sighting("error", ErrorSeen(text, paste.at("", index), "said", line=index + 1, symptoms=met))


def parse_reports(lines: Sequence[str], told: Iterable[tuple[int, str]]) -> Iterator[Sighting]:
    """Yield a note where a failure is reported: by a form for failures, or by one of the lines `told`."""
    titled = lines[0].startswith("#") and not _ASKING_TITLE.match(lines[0])
    if (titled and _is_form(lines)) or any(True for _ in _reporting(lines, told)):
        yield Sighting("note", REPORTED)


def parse_titled(title: str) -> Iterator[Sighting]:
    """Yield a note that a person reports what a text with a title shows; a question reports nothing."""
    if not _ASKING_TITLE.match(title):
        yield Sighting("note", REPORTED)


def troubled_lines(paste: Paste, lines: Sequence[str], sights: Sequence[Sight]) -> list[tuple[int, str]]:
    """Return the lines of a person that hold words of trouble, as the row of such words has them."""
    said = next((sight.pattern for sight in sights if sight.pattern.fault == "said"), None)
    if said is None:
        return []
    pattern = row_pattern(said.pattern)
    lines = ["" if _LABELLED.match(line) or _VALUE.match(line) else line for line in lines]
    return [one for one in told_lines(paste, lines) if pattern.search(without_soundness(one[1]))]


def printed_trouble(lines: Sequence[str], sights: Sequence[Sight]) -> tuple[int, str] | None:
    """Return the last line of a block of output in which a program's sentence holds words of trouble."""
    said = next((sight.pattern for sight in sights if sight.pattern.fault == "said"), None)
    pattern = row_pattern(said.pattern) if said else None
    blocks = [(index, line) for index, line, fenced in apart_from_blocks(lines[:HEAD]) if fenced]
    for index, line in reversed(blocks if pattern else ()):
        bare = line.strip()
        if sum(map(str.isalpha, bare)) < LEAST or _CODE.match(bare) or _LOGGED.match(line) or is_logged(line):
            continue
        told = without_soundness(bare)
        if _plain(bare.split()) >= _PRINTED and pattern and (_PRINTS.search(told) or pattern.search(told)):
            return index, bare
    return None


def parse_printed(paste: Paste, lines: Sequence[str], sights: Sequence[Sight]) -> Iterator[Sighting]:
    """Yield what a program printed as the error of a text whose writer reports one and shows none."""
    if found := printed_trouble(lines, sights):
        index, text = found
        met = met_within(sights, index, index)
        error = ErrorSeen(text[:600], paste.at("", index), "logged", line=index + 1, symptoms=met)
        yield Sighting("error", error)


def formed_lines(paste: Paste, lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return the sentences of a form in which a failure is reported, whatever their words."""
    if not _is_form(lines) or _ASKING_TITLE.match(lines[0]):
        return []
    told = ((index, line) for index, line in told_lines(paste, lines) if not _BOX.match(line))
    return [one for one in told if is_sentence(one[1], titled=False) and not _SUPPOSED.search(one[1])][-1:]


def _is_form(lines: Sequence[str]) -> bool:
    return any(_OF_A_BUG.match(line) for line in lines)


def _reporting(lines: Sequence[str], told: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines of which a sentence tells of a failure that happened: no question, nothing supposed.

    What the title of the text asks is a question, whatever its sentences tell on the way to it.
    """
    titled = lines[0].startswith("#")
    if _ASKING_TITLE.match(lines[0]) or not (titled or _is_post(lines)):
        return  # a log without a title holds no words of a person
    form, told = _is_form(lines), list(told)
    for index, line in told:
        if not (line.startswith("# ") or _is_a_persons(line)):
            continue
        if form or any(_reports(one) for one in _clauses(line)):
            yield index, line
    standing = [index for index, line in enumerate(lines) if line.strip()]
    if not titled and _is_brief(lines):
        alone = len(standing) == 1  # beside others a sentence has to say itself that something failed
        terse = (one for one in told if one[0] == standing[-1] and _is_terse(one[1]))
        yield from (one for one in terse if alone or not is_sentence(one[1], titled=False))


def _clauses(line: str) -> Iterator[str]:
    return (one.strip("#*>- ") for one in _CLAUSE.split(without_soundness(line)))


def _is_brief(lines: Sequence[str]) -> bool:
    return sum(bool(line.strip()) for line in lines) <= _POST


def _is_terse(line: str) -> bool:
    """True for words of trouble that a brief text ends in, in whatever form: a remark, a bare message.

    What may come, is over, is asked or warned of is none, and no value of a label.
    """
    if _ENDS_IN.search(line):
        return True
    if any(one.search(line) for one in (_OF_PROGRAM, _WARNS, _QUOTED_CODE, _VALUE, _WISHED)) or is_generated(
        line
    ):
        return False
    clauses = [told_part(one, last) for one, last in _with_last(list(_clauses(line)))]
    return not any(_SUPPOSED.search(one) or OVER.search(one) for one in clauses)


def _with_last(clauses: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each clause, and whether nothing but thanks follows it: `OOM? Lower the batch.` is advice."""
    told = [one for one in clauses if not _THANKS.match(one)]
    followed = [*(not one.endswith("?") for one in told[1:]), False]
    yield from ((one, not after) for one, after in zip(told, followed, strict=False))


def told_part(clause: str, last: bool = True) -> str:
    """Return what a clause tells before it asks: `CUDA out of memory, how much is needed?`.

    One that ends in a question mark and asks by no word doubts what it tells: `size mismatch 4 vs. 3?`.
    """
    before = _ASKS_AT_END.sub("", clause) if last else clause
    return before.rstrip("? ") if last and not _ASKS.search(before) else before


def _is_post(lines: Sequence[str]) -> bool:
    """True for a text that a person opens, or that is short but for the output that it shows in blocks."""
    written = [line for _, line, fenced in apart_from_blocks(lines) if line.strip() and not fenced]
    opened = any(_is_a_persons(line) and is_sentence(line, titled=False) for line in written[:_OPENING])
    return opened or len(written) <= _POST


def _is_a_persons(line: str) -> bool:
    """True for a line that no program wrote: it begins like none, and most of its words are plain."""
    announces = line.rstrip().endswith(":") and _plain(line.split()) >= _WORDS
    announces = announces or _SPEAKS.match(line) is not None
    if (
        (_NO_PERSON.match(line) and not announces)
        or _OF_PROGRAM.search(line)
        or is_logged(line)
        or is_generated(line)
    ):
        return False
    words = line.split()
    return not line.isascii() or _plain(words) >= _SHARE * len(words)


def _plain(words: Sequence[str]) -> int:
    return sum(word.strip(".,;:!?()'\"*_`-").replace("'", "").isalpha() for word in words)


def _reports(clause: str) -> bool:
    if _ASKED_FOR.match(clause):
        return False
    return bool(_REPORTS.search(clause)) and not _SUPPOSED.search(clause) and not OVER.search(clause)


def told_lines(paste: Paste, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield what a person may have written: a title, sentences, and what no reader has understood."""
    left, brief = {index for index, _ in paste.loose()}, _is_brief(lines)
    for index, line in enumerate(lines):
        title = index == 0 and line.startswith("# ")
        if _PIN.match(line) or _LOGGED.match(line):
            continue
        if title or brief or index in left or (index < HEAD and is_sentence(line, titled=False)):
            yield index, line


def parse_sentences(paste: Paste, lines: Sequence[str]) -> Iterator[Sighting]:
    """Yield a note that quotes the first sentence that a person wrote outside of code."""
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    for index, line, fenced in apart_from_blocks(lines):
        if not fenced and index not in paste.claimed and _is_said(line, titled=index == first):
            quoted = " ".join(line.split())[:160]
            yield Sighting("note", f"{NOT_JUDGED}{paste.at('', index)}: {quoted}")
            return


def _is_said(line: str, titled: bool) -> bool:
    """True for a sentence, and for words in brackets, or behind a label where they tell of a lack."""
    words = _BESIDE.sub("", line).split() if _BESIDE.match(without_soundness(line)) else []
    beside = len(line) >= _IDEOGRAPHS and _plain(words) >= max(_PRINTED, len(words) / 2)
    return (is_sentence(line, titled) or beside) and not is_logged(line)


def is_generated(line: str) -> bool:
    """True for a line that quotes what a model wrote."""
    return bool(_OF_A_MODEL.match(line))


def is_sentence(line: str, titled: bool) -> bool:
    """True for a line of six words and more, most of them plain, or of ten ideographs or kana."""
    line = line.lstrip("# ") if titled else line
    if len(line) < _IDEOGRAPHS or _NO_PERSON.match(line) or is_generated(line):
        return False
    if not line.isascii() and sum("\u3040" <= character <= "\u9fff" for character in line) >= _IDEOGRAPHS:
        return True
    words = line.split()
    return _plain(words) >= max(_WORDS, _SHARE * len(words))
