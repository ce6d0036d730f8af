"""What a person says of the cause and of what helped: sentences that are told again with an answer.

Of a report the writer often knows the half already: "broken since 4.48", "works with X", "the cause is Y".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.facts import TOLD_CAUSE, TOLD_WAY
from envdoctor.pastes.prose import SENTENCE_END
from envdoctor.pastes.sentences import is_sentence
from envdoctor.pastes.sightings import HEAD, Paste, Sighting, apart_from_blocks
from envdoctor.pastes.warned import is_logged

KEPT = 4
"""Sentences of each kind that are kept."""
LONGEST = 300
_LEAST = 4
"""Words of the shortest sentence that tells something."""
_FORM = re.compile(
    r"(?i)^\W{0,4}(?:\[[ xX]\]|if (?:the|your) (?:issue|bug)|please (?:note|use|provide|make|fill)|"
    r"a clear and|before submitting|make sure|i (?:have )?(?:searched|read|checked)|<!--)|"
    r"\d{1,5} upgraded, \d{1,5} newly installed|"
    r"\bwe (?:can )?conclude\b|version solving failed|\bwhich is incompatible\.?$|^because .{1,80} depends on"
)
"""What the forms of projects ask for, and what resolvers say."""
_ASKS = re.compile(
    r"(?i)\?|(?:^| )(?:how (?:to|do|can|should)|what (?:is|should|could)|"
    r"any (?:idea|help|suggestion|advice|insight|pointer|work-?around|solution|fix)(?:e?s)?\b"
    r"(?! (?:for|is|was|did|does))|i wonder|is there|appreciated|thanks|thank you|(?:would|could|can) you|"
    r"not sure|no idea|(?:do|does)(?:n['’]?t| not) (?:know|understand)|unclear|figure out|"
    r"similar to|any(?:body|one) else)\b|请问|怎么|如何|吗|是否"
)
_CAUSE = re.compile(
    r"(?i)\b(?:because|due to|caused? by|root cause|(?:reason|culprit) (?:is|was|seems)|turns? out|"
    r"com(?:es|ing) from|mismatch\w{0,2}|incompatib\w{2,6}|deprecated|renamed|replaced by|"
    r"(?:was|were|been) removed|"
    r"introduced (?:in|by)|regression|since (?:v?\d|the upgrad|upgrad|updat))\b|"
    r"因为|原因|由于|导致|不兼容|冲突"
)
"""Words that name a cause; what merely fails, lacks or is not supported says none."""
_BESIDE = re.compile(
    r"(?i)\b(?:other (?:projects|models|machines|tools|people)|same (?:machine|environment|setup)|"
    r"for (?:a while|some time|hours))\b"
)
"""What works elsewhere or for a time, and is no way out."""
_DONE = (
    r"(?:install|set|remov|delet|disabl|enabl|add|chang|replac|uninstall|us|pass|build|compil|reduc|increas|lower|"
    r"turn|unset|mov)\w{0,5}"
)
_WAY = re.compile(
    r"(?i)\b(?:work(?:s|ed) (?:\w{1,12} ){0,2}(?:with|when|if|after|by|once|without)|"
    r"(?:fix|solv|resolv|mend|avoid|help|prevent|bypass)(?:e?s|ed|d)? (?:it|this|that|by|the|my)|"
    r"(?:is|was|be|got|been) (?:fixed|solved|resolved)|work-?arounds?|solution|"
    r"(?:up|down)grad(?:e[ds]?|ing)|revert\w{0,3}|roll(?:ed|ing)? back|pinn?(?:ed|ing)?|switch(?:ed|ing)? to|"
    rf"(?:after|by|if you|once i) (?:manually )?{_DONE}|"
    rf"(?:when|if) i (?:manually )?{_DONE}\b[^;]{{0,160}}\b(?:works?|worked|ok|okay|"
    r"fine(?![- ]?tun)|normal\w{0,3}|gone|runs?|no (?:errors?|problems?|issues?)|disappears?|succeed\w{0,3})|"
    r"(?:use|using|set|install|call|pass|take|write)\b[^.;]{2,60} instead|"
    r"instead of\b[^.;]{0,40} (?:use|set))\b|"
    r"解决|降级|升级|改成|改为|换成|需要安装|可以用"
)
_FUTILE = re.compile(
    r"(?i)\b(?:did(?:n['’]?t| not)|does(?:n['’]?t| not)|"
    r"still (?:fail|get|see|the|same|not|have|happen)\w{0,3}|no luck|without success|"
    r"(?:get|got|receive|see|throw|raise)s?d? (?:the |this |an? |another )?(?:\w{1,12} )?error\b|"
    r"no (?:chance|way) to|unable to|(?:cannot|can['’]?t|could ?n['’]?t|could not)\b(?! reproduce)|"
    r"as (?:is |was )?(?:suggested|recommended|advised|described|instructed)|"
    r"not (?:fix|help|solv|work|resolv)\w{0,3}|but (?:it )?(?:fails|crashes|hangs|breaks)\b|"
    r"same (?:error|issue|problem|result))\b|还是|仍然|"
    r"[>》:：]\s{0,3}(?:no|nope|none|n/?a|否|没有)[.!]?\s{0,3}$"
)
"""What was tried in vain, and what a form asked about and was not done."""
_MOVED = r"(?:up|down)grad(?:ed?|ing)|updat(?:ed?|ing)|switch(?:ed|ing)?|enabl(?:ed?|ing)|turn(?:ed|ing) on"
_FAILS = (
    r"hang(?:s|ing)?|hung|crash(?:es|ed|ing)?|fail(?:s|ed|ing)?|br(?:eaks?|oke)|freez(?:es?|ing)|"
    r"stuck|slow(?:s|er|ed)?|decreas(?:es?|ed)|drop(?:s|ped)"
)
_WORSENED = re.compile(
    rf"(?i)\b(?:after|since|when|once|upon) [^;]{{0,40}}\b(?:{_MOVED})\b[^;]{{0,160}}\b(?:{_FAILS})\b|"
    rf"\b(?:{_FAILS})\b[^;]{{0,60}}\b(?:after|since|when|once|upon) [^;]{{0,40}}\b(?:{_MOVED})\b"
)
"""A move of releases after which something fails: what went before is no way out of it."""
_MENDED = re.compile(r"(?i)\b(?:works?|worked|fix|solv|resolv|no longer|downgrad|revert|roll\w{0,3} back)")


def parse_diagnosed(paste: Paste, lines: Sequence[str]) -> Iterator[Sighting]:
    """Yield notes that quote sentences of a person which name a cause or a way out, each with its place."""
    told = [one for one in _said(paste, lines) if not (_ASKS.search(one[1]) or _FORM.search(one[1]))]
    ways = [one for one in told if _is_way(one[1])]
    causes = [one for one in told if one not in ways and _CAUSE.search(one[1])]
    for kind, sentences in ((TOLD_WAY, ways), (TOLD_CAUSE, causes)):
        for index, said in sentences[:KEPT]:
            yield Sighting("note", f"{kind}{paste.at('', index)}: {said}")


def _is_way(said: str) -> bool:
    """True for a sentence that names what helped, and not what was tried in vain or made things worse."""
    worse = _WORSENED.search(said) and not _MENDED.search(said)
    return bool(_WAY.search(said)) and not (worse or _FUTILE.search(said) or _BESIDE.search(said))


def _said(paste: Paste, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the sentences that a person wrote outside of code, with the places of their lines."""
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    for index, line, fenced in apart_from_blocks(lines[:HEAD]):
        titled = index == first and line.startswith("#")
        if is_logged(line) or line.lstrip().startswith(("/", "http")):
            continue
        if fenced or not (titled or is_sentence(line.strip(" -*"), titled=False)):
            continue
        for said in SENTENCE_END.split(" ".join(line.strip("# ").split())):
            if len(said) <= LONGEST and (len(said.split()) >= _LEAST or not said.isascii()):
                yield index, said
