"""What running text mentions by the way: `I use torch 2.1.0 on 2x A100 40GB, driver 535, Python 3.10`."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.facts import CudaVersion, Setting, Toolkit
from envdoctor.facts.names import normalise
from envdoctor.matrix.card_names import CardNames
from envdoctor.matrix.lexicon import PackageNames
from envdoctor.pastes.distributions import ELSEWHERE
from envdoctor.pastes.gpus import find_gpus
from envdoctor.pastes.labelled import DRIVERS, newest_driver
from envdoctor.pastes.platforms import parse_named_image
from envdoctor.pastes.sightings import Paste, Sighting, distribution_sightings

_ADVICE = (
    r"\brequire|\bneed|\bsupports?\b|\bexpected?\b|\bshould\b|\bmust\b|\btry\b|https?://|^\s*File \"|"
    r"\bworks? (?:on|with|in)\b|\bworks?[,.;]|\binstead\b|\bminimum|\bat least\b|\brecommend|\bsuggest|"
    r"\b(?:better|best|please) (?:to )?(?:install|keep|pin|set|switch|use)\b"
)
_NO_CARD = re.compile(rf"(?i){_ADVICE}")
_NO_FACT = re.compile(
    rf"(?i){_ADVICE}|no matching distribution|could not find a version|\bcompil|\bbuilt (?:for|with|against)|"
    r"\b(?:up|down|de)grad|\brevert|\broll(?:ed|ing)? back\b|pip3? install|conda install|uv (?:pip|add)|"
    r"\bwas (?:added|removed|introduced)|"
    r"\bwe can conclude\b|\bwe know from\b|\bbecause \S{1,60} depends on\b|"
    r"\bis not supported$|\bcan ?not (?:be )?install(?:ed)?$|"
    rf"{ELSEWHERE}|"
    r"\bsince\b|\bdeprecat|\bwill be\b|\bfixed in\b|\bin (?:the )?NumPy 1|NumPy 1\.x"
)
_EXAMPLE = re.compile(r"(?i)\((?:e\.? ?g\b|i\.? ?e\b|for example\b|such as\b|like\b)[^()\n]{0,80}\)")
"""What a message names as an example is nobody's card."""
_TOUCHING = re.compile(
    r"(?<=[\u3040-\u9fff])(?=[A-Za-z])|(?<=[A-Za-z\d])(?=[\u3040-\u9fff])(?![卡张块个的系])"
)
"""Where a word in Latin letters touches ideographs, which set no blanks."""
_DEMANDED = re.compile(r"(?i)\bdepends? on [^,;]{0,120}?(?=[,;]|$| and | but | or )")
"""What metadata ask for, which need not be there."""
_CONTRAST = re.compile(r"(?i),? (?:but|while|whereas|yet|however),? ")
_ASKS = re.compile(r"(?i)^(.*?)\b(?:requires|needs|wants|asks for)\b")
_HELD = re.compile(
    r"(?i)\b(?:have|has|had|got|uses?|using|running)\b(?! (?:to|tried|tested|seen|not)\b)|"
    r"\b(?:is|was|gets?|got|has been) (?:already |currently )?(?:installed|there|present)\b"
)
"""How a person says what is installed, after what is asked for."""
SENTENCE_END = re.compile(r"(?:(?<=[\w)`]{3}[.!?;])|(?<=\d[.!?;])) (?=\S)")
_ADDRESS = re.compile(r"\]\(https?://[^\s()]{1,300}\)")
"""Where a link of Markdown leads: no words of the sentence."""
_DIGIT = re.compile(r"\d|[lL]o[rR][aA]|LORA|FSDP|全参")
_HAVE = re.compile(r"(?i)\bbut you have ([a-z0-9][\w.-]{0,60}) (\d[\w.+]{0,40}?)\.? which is incompatible")
_INCLUDES = re.compile(
    r"\b(?:torch|transformers|cuda|python|driver|rtx|gtx|tesla|[abhv]\d{2,3}|l40|l20|vllm|peft|trl|deepspeed|numpy|zero|fsdp"
    r"|q?lora|llama|qwen|mistral|gemma|glm|baichuan|batch|length|bitsandbytes|flash|triton|xformers|accelerate|nvidia"
    r"|glibc)|[单双张块卡]|\b[2-5]0[5-9]0(?=s?\b)"
)
_CARD = re.compile(
    r"(?i)geforce|quadro|titan|tegra|jetson|xavier|\borin\b|\bthor\b|\bl4\b|\bdgx\b"
    r"|\b(?:grid|nvs|[gkmpt]{1,2}\d{1,4}|g[bh]\d\d)|[x*]\s?\w{1,3}\d|\bp10\d-"
)
"""What a name of a card holds whose line need not tell anything else."""
_PYTHON = re.compile(
    r"(?i)(?<![\w./-])py(?:thon)?\s?(?:version)?[ :=v]{0,3}(3\.\d{1,2}(?:\.\d{1,2})?)(?![\w.]{0,80}/)(?!\w)"
)
_DRIVER = re.compile(rf"(?i)\b(?:nvidia[ -])?driver(?: version)?\s?[:=v]{{0,2}}\s?({DRIVERS})(?![\w])")
_BUILD = re.compile(
    r"(?i)(?<![\w./-])(?:py)?torch(?:[ `]{1,2}(?:[<>=~]{1,2} ?)?v?\d[\w.]{0,20})?[ `]{0,2}[ (,]"
    r"(?:[^()\n;]{0,40}?[ (,])?cu(1[1-9])(\d?)\b"
)
"""A build of torch by the CUDA of its wheel: `torch 2.11 (PyPI, cu13)`."""
_CUDA = re.compile(
    r"(?i)(?<![\w./-])cuda(?:[ -]?toolkit)?(?: version)?\s?[:=v]{0,2}\s?(\d{1,2}\.\d{1,2})(?:"
    r"\.\d{1,4})?(?![\w])"
)
_WILD_NVIDIA = re.compile(r"\bnvidia-(?:\*|[a-z]{2,20})-cu1[1-9]\b")
_HINTS = {
    "model": re.compile(
        r"(?i)(?<![\w/])((?:[\w-]{2,40}/)?(?:llama|qwen|mistral|mixtral|gemma|glm|chatglm|baichuan|yi|deepseek|phi|falcon|"
        r"internlm|vicuna|bloom|opt|starcoder|codellama)[\w.]{0,12}(?:-[\w.]{1,12}){0,3}?-?\d{1,3}(?:\.\d)?b(?:-[\w.]{1,16}){0,3})"
    ),
    "method": re.compile(
        r"(?i)(?<![\w/-])(q?lora|full[ -](?:parameter )?fine[ -]?tun\w+|全参数?微调)(?![\w.])"
    ),
    "quant": re.compile(
        r"(?i)(?<!not )(?<!no )(?<!without )(?<![\w/=-])"
        r"(4[ -]?bit|8[ -]?bit|nf4|int4|int8)(?:s|ed)?\b(?!\s?[=:])"
    ),
    "zero_stage": re.compile(r"(?i)(?<![\w/])zero[ -]?(?:stage[ -]?)?([123])(?![\d.\w])"),
    "parallel": re.compile(
        r"(?<![\w/.-])(?<!of )(?<!or )(?<!not )(?<!no )(?<!out )(?<!vs )(FSDP)2?"
        r"(?! ?(?:or|vs|/)\b)(?![\w/.=:-])"
    ),
    "tp": re.compile(
        r"(?i)\b(?:tensor[ -]parallel(?:ism)?(?:[ _-]size)?|TP)(?: of| is)?[ =:]{1,3}(\d{1,2})\b"
    ),
    "batch": re.compile(
        r"(?i)\bbatch(?:[ _-]?size(?:\s(?:of|is)|\s?[=:])?\s?|\s?=\s?|\s)([1-9]\d{0,3})\b"
        r"(?![./:]|\s?(?://|\*|(?:of|out)\b))"
    ),
    "lora_rank": re.compile(r"\b(?:[Rr]ank(?:\s(?:of|is)|\s?[=:])?\s|r\s?=\s?)(\d{1,3})\b(?!\]|:)"),
    "seq": re.compile(
        r"(?i)\b(?:(?:max(?:imum)?|seq(?:uence)?|context|cutoff)[ _-]len(?:gth)?"
        r"(?:\s(?:of|is)|\s?[=:])?\s?|max_seq_len(?:gth)?\s|seq\s)(\d{3,6})\b"
    ),
}
_GLIBC = re.compile(r"(?i)\bglibc[ -]?(2\.\d\d)\b")


def parse_prose(paste: Paste) -> Iterator[Sighting]:
    """Yield the versions, GPUs, driver and Python that unclaimed lines mention as facts."""
    for index, line in paste.loose():
        if (start := line.find("vllm serve")) >= 0 and line[max(0, start - 1) : start] in ("", " ", "`"):
            yield from distribution_sightings("vllm", "installed", paste.at("", index))
        if _DIGIT.search(line) is None and _CARD.search(line) is None:
            continue
        if "which is incompatible" in line:
            yield from _incompatible(line, paste.at("pip", index))
            continue
        line = _DEMANDED.sub("", line[:600] if line.isascii() else _TOUCHING.sub(" ", line[:600]))
        told, source = _INCLUDES.search(line.lower()) is not None, paste.at("", index)
        if told:
            stated = _stated(line, _NO_FACT)
            yield from _facts_of(stated, source, paste.packages)
            yield from _hints(stated, source)
        if told or _CARD.search(line):
            yield from _gpus(_stated(line, _NO_CARD), source, paste.cards)


def _stated(line: str, other: re.Pattern[str]) -> str:
    """Return a line without the sentences that advise, demand or command: what they name is nobody's fact."""
    line = _ADDRESS.sub("]", line)
    if not other.search(line):
        return line
    parts = (said if not other.search(said) else _beside(said, other) for said in SENTENCE_END.split(line))
    return " ".join(filter(None, parts))


def _beside(said: str, other: re.Pattern[str]) -> str:
    """Return what is there by a sentence that sets a demand against: `a 1 needs b>=2, but I have b 1.9`."""
    demand, *rest = _CONTRAST.split(said)
    asks = _ASKS.search(demand)
    there = [part for part in rest if _HELD.search(part) and not other.search(part)]
    return ". ".join([asks[1], *there]) if asks and there else ""


def _incompatible(line: str, source: str) -> Iterator[Sighting]:
    for name, version in _HAVE.findall(line):
        yield from distribution_sightings(name, version, source, exact=True)


def _facts_of(line: str, source: str, packages: PackageNames) -> Iterator[Sighting]:
    named = [
        (_meant(m["name"], packages), m["version"].rstrip("."), "==" in m["between"])
        for m in packages.mentions.finditer(line)
    ]
    for name, version, exact in named:
        if not any(
            other != version for same, other, _ in named if same == name
        ):  # two are set against each other
            yield from distribution_sightings(name, version, source, exact)
    if match := _PYTHON.search(line):
        yield Sighting("environment.python", match[1], source)
    if match := _DRIVER.search(line):
        yield Sighting("driver.version", newest_driver(match[1]), source)
    if len(builds := set(_BUILD.findall(line))) == 1:
        major, minor = builds.pop()
        yield Sighting("build", ("torch", {"cuda": f"{major}.{minor or 0}"}), source)
    if match := _CUDA.search(line):
        yield _cuda(CudaVersion.parse(match[1]), line, source)
    if match := _GLIBC.search(line):
        yield Sighting("host.glibc", match[1], source)
    if ":" in line:
        yield from parse_named_image(line, source)
    for name in _WILD_NVIDIA.findall(line):
        yield from distribution_sightings(name, "installed", source)


def _meant(name: str, packages: PackageNames) -> str:
    return packages.find(name.lower().replace("_", "-")) or normalise(name)


def _gpus(line: str, source: str, cards: CardNames) -> Iterator[Sighting]:
    if gpus := find_gpus(_EXAMPLE.sub("", line), source, cards):
        yield Sighting("gpus", gpus)


def _cuda(version: CudaVersion, line: str, source: str) -> Sighting:
    if "nvidia-smi" in line.lower():
        return Sighting("driver.cuda", version, source)
    return Sighting("toolkit", Toolkit(version, "", f"{source} (which CUDA is not told)"), source)


def _hints(line: str, source: str) -> Iterator[Sighting]:
    """Yield what the line says of a run in passing: model, method, sizes."""
    for key, pattern in _HINTS.items():
        if (match := pattern.search(line)) and (key != "lora_rank" or "lora" in line.lower()):
            value = match[1].lower() if key != "model" else match[1]
            yield Sighting(
                "hint", Setting(key, "full" if value.startswith(("full", "全参")) else value, source), source
            )
