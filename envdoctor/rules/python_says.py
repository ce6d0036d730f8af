"""What Python's interpreter says of an error of which no package is known: what it means, and the ways out.

A value that is None, an argument that is not taken, a part of a package that is not there, a program that is
not found: such sentences are the same whoever runs, so that what they mean can be told without a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from envdoctor import lazy_re as re
from envdoctor.commands import commands, pip_install
from envdoctor.facts import ErrorSeen
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.interface_records import libraries_with
from envdoctor.rules.build_libraries import exporting
from envdoctor.rules.calendar import has_newer, is_recorded, package_facts
from envdoctor.rules.foreign import foreign_backend
from envdoctor.rules.generations import asking_package
from envdoctor.rules.import_chains import package_of
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.messages import distinct
from envdoctor.rules.newest import newest_ways
from envdoctor.rules.standard_modules import is_standard
from envdoctor.rules.view import View
from envdoctor.values import dataclass

ID = "PYTHON-SAYS"
_QUOTES = "['\"`]"
NONE = re.compile(
    r"'NoneType' object (?:has no attribute '(?P<member>\w{1,80})'|"
    r"is not (?:subscriptable|iterable|callable)|does not support \w+ assignment)|"
    r"object of type 'NoneType' has no len|argument of type 'NoneType' is not iterable|"
    r"not supported between instances of (?:'NoneType'|'\w{1,40}' and 'NoneType')|"
    r"unsupported operand type\(s\) for [^:\n]{1,20}: (?:'NoneType'|'\w{1,40}' and 'NoneType')|"
    r"not '?NoneType'?[`'\"]{0,3}$|infer dtype of NoneType"
)
_KEYWORD = re.compile(
    r"(?:\b(?P<owner>[A-Za-z_][\w.]{0,160})\(\) )?got an unexpected keyword argument"
    rf"(?: {_QUOTES}(?P<name>\w{{1,80}}))?"
)
_MODULE = re.compile(
    rf"No module named {_QUOTES}?(?P<top>[A-Za-z_]\w{{0,80}})(?P<rest>(?:\.\w{{1,80}}){{0,8}})"
)
_NAME = re.compile(
    rf"cannot import name {_QUOTES}(?P<name>\w{{1,80}}){_QUOTES} from {_QUOTES}(?P<module>[\w.]{{1,160}})"
)
_MEMBER = re.compile(
    r"(?:module '(?P<module>[\w.]{1,120})'|(?:type object )?'(?P<owner>[A-Za-z_][\w.]{0,80})'(?: object)?) "
    r"(?:has no attribute '(?P<member>\w{1,80})'|(?P<state>is not (?:subscriptable|iterable|callable)))"
)
_LIBRARY = re.compile(r"(?P<lib>\blib[\w+.-]{1,60}\.so(?:\.\d{1,4}){0,4}): cannot open shared object")
_SYMBOL = re.compile(
    r"(?P<file>[^\s:'\"]{1,300}\.so(?:\.\d{1,4}){0,4}): undefined symbol: ?(?P<symbol>\w{1,200})"
)
_PROGRAM = re.compile(r"No such file or directory: '(?P<program>[A-Za-z][\w+-]{1,30}(?:\.exe)?)'")
_CALLED_NONE = "'NoneType' object is not callable"
_CALL = re.compile(r"([A-Za-z_][\w.]{1,80})\(")
_ASKED = re.compile(r"(?P<holder>[A-Za-z_][\w.]{0,80})\.(?P<member>\w{1,80})\b")
_WORKED_WITH = re.compile(
    r"([A-Za-z_][\w.]{1,80})\s{0,2}(?:[<>]=?|[*/+-])\s{0,2}[\w.]|\b(?:len|int|float|Path|open|range)\(([A-Za-z_][\w.]{1,80})\)"
)
_EXPRESSION = r"[A-Za-z_][\w.]{0,80}(?:\[[^\[\]]{1,60}\])?"
"""A name, a member or an item in code."""
_LAST, _FIRST = re.compile(rf"({_EXPRESSION})\s{{0,2}}$"), re.compile(rf"=?\s{{0,2}}({_EXPRESSION})")
_OPERANDS = re.compile(
    r"(?: for |')(?P<sign>[^\s:'\w]{1,3}?)=?(?:: |' not supported between instances of )"
    r"(?:(?P<left>'NoneType')|'[\w.]{1,60}') and (?P<right>'NoneType')?"
)
_GONE_THROUGH = re.compile(
    rf"\bin ({_EXPRESSION})\s{{0,2}}(?::|$|\]|\)| for | if )|\.(?:update|extend|join)\(({_EXPRESSION})\)|"
    rf"\*\*?({_EXPRESSION})\s?[,)]|(?:tuple|list|set|sorted|dict|zip|enumerate|sum|max|min)\(({_EXPRESSION})\)|"
    rf"({_EXPRESSION})\["
)
"""What a line of code goes through, or looks into."""
_OF_CUDA = re.compile(r"cuda|libcu|nvrtc|libnv|cudnn|nccl")
_MEMBERS_OF_PYTHON = frozenset({"dict", "list", "tuple", "str", "int", "float", "bytes", "set", "bool"})


@dataclass(frozen=True, slots=True)
class _Told:
    """What a sentence means: the answer in one line, why, and the ways out, best first."""

    summary: str
    cause: str
    remedies: tuple[Remedy, ...]


def python_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return what a sentence of the interpreter means where no package is known to it; None for another."""
    for pattern, read in _READERS:
        match = pattern.search(error.text)
        told = read(view, error, {k: v for k, v in match.groupdict().items() if v}) if match else None
        if told is not None:
            return Finding(
                id=ID,
                severity=Severity.ERROR,
                summary=f"{told.summary}: {error.text[:240]}",
                cause=told.cause,
                evidence=(Evidence("error", error.text, error.source),),
                remedies=distinct((*told.remedies, *newest_ways(view, error))),
                certainty=Certainty.UNCERTAIN,
                sources=("https://docs.python.org/3/library/exceptions.html",),
                explains=error.symptoms,
                prior=0.3,
            )
    return None


def stdlib_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return the answer where a module of Python itself lacks what an installed package asks of it."""
    match = _MEMBER.search(error.text)
    module = (match and match["module"]) or ""
    return python_finding(view, error) if module and is_standard(view, module) else None


def none_called(view: View, error: ErrorSeen) -> Finding | None:
    """Return the answer where what is called is None: no release of the code that calls is at fault there."""
    return python_finding(view, error) if _CALLED_NONE in error.text else None


def is_of_python(text: str) -> bool:
    """True for a sentence of the interpreter, whose words no library chose."""
    return any(
        pattern.search(text) for pattern in (NONE, _KEYWORD, _MODULE, _NAME, _SYMBOL, _PROGRAM, _MEMBER)
    )


def _none(view: View, error: ErrorSeen, told: Mapping[str, str]) -> _Told:
    if _CALLED_NONE in error.text:
        return _called_none(view, error)
    name = _holder(error, told.get("member", ""))
    named = name or "a value that it uses"
    return _Told(
        f"{named} is None where a value is needed",
        f"{named} was not set, not found or not returned: an argument or setting left out (or given as None,"
        " null), a file or part of a checkpoint that is not there, or a call that failed in silence before.",
        (
            Remedy(
                f"Give {named} a value explicitly (argument, setting, config file)."
                if name
                else "See in the line above the error what is None: give that argument or setting a value."
            ),
        ),
    )


def _called_none(view: View, error: ErrorSeen) -> _Told:
    code = error.frames[-1].code if error.frames else ""
    found = list(dict.fromkeys(_CALL.findall(code)))
    name = found[0].removeprefix("self.") if len(found) == 1 else ""
    owner = asking_package(view, error.frames[-1]) if error.frames else ""
    named, whose = name or "what is called", f" for {owner}" if owner else ""
    return _Told(
        f"{named} is None where a function or class is needed",
        f"{named} was never put in its place: an optional package that brings it is not installed or failed"
        " to import in silence (its name is set to None then), or a value was given as None that should be a"
        " function.",
        (
            Remedy(
                f"See where {named} is set: import by hand what it comes from, whose own error tells what is"
                f" missing; install or repair that package{whose}."
            ),
            Remedy(f"Or give {named} explicitly, where it is an argument that was left out."),
        ),
    )


def _holder(error: ErrorSeen, member: str) -> str:
    """Return the expression that is None in the innermost line of code; empty where it cannot be told."""
    code = error.frames[-1].code if error.frames else ""
    if member:
        holders = (one["holder"] for one in _ASKED.finditer(code) if one["member"] == member)
        return next(holders, "").removeprefix("self.")
    if operands := _OPERANDS.search(error.text):
        return _operand(code, operands["sign"], bool(operands["left"]), bool(operands["right"]))
    found = [next(filter(None, one)) for one in _WORKED_WITH.findall(code)]
    if not found and "is not" in error.text:
        found = [next(filter(None, one)) for one in _GONE_THROUGH.findall(code)]
    return found[0].removeprefix("self.") if len(found) == 1 else ""


def _operand(code: str, sign: str, left: bool, right: bool) -> str:
    """Return what stands beside an operator where the message says that None does; both where both are."""
    before, _, after = code.partition(sign)
    one, two = _LAST.search(before), _FIRST.match(after)
    sides = (one[1] if one else "", two[1] if two else "")
    told = [name for name, none in zip(sides, (left, right), strict=True) if none and name]
    return " or ".join(name.removeprefix("self.") for name in told)


def _keyword(view: View, error: ErrorSeen, told: Mapping[str, str]) -> _Told:
    name, owner = told.get("name", ""), told.get("owner", "")
    class_ = owner.partition(".")[0] if owner[:1].isupper() else ""
    taker, given = f"{owner}()" if owner else "what is called", name or "an argument that it is given"
    cause = (
        f"{taker} of the release that runs does not take {given}: who calls it was written for another"
        " release, or hands on a key of a settings file, a command line or a checkpoint's config that it does"
        " not know."
    )
    ways = []
    if not name.startswith("_"):  # such a name is a library's own, and nobody's setting
        text = (
            f"Take {name or 'it'} out of the call, command or config, or write what this release has instead."
        )
        ways.append(Remedy(text))
    if class_.endswith("Config"):
        cause += f" {class_} is filled from a file, which a newer release of its library may have written."
        ways.append(
            Remedy(
                "Or delete the key from that file (config.json, adapter_config.json), or upgrade the library"
                f" that has {class_} to the release that wrote it."
            )
        )
    caller = next(filter(None, (asking_package(view, frame) for frame in reversed(error.frames))), "")
    if caller and package_facts(view, caller):
        text = f"Or upgrade {caller}, which calls it, together with what it calls; or downgrade the callee."
        ways.append(Remedy(text, pip_install(caller, options="-U")))
    else:
        text = "Or bring caller and callee to releases of one time: upgrade the older of the two."
        ways.append(Remedy(text))
    return _Told(f"{taker} does not take {given}", cause, tuple(ways))


def _module(view: View, error: ErrorSeen, told: Mapping[str, str]) -> _Told | None:
    top, rest = told["top"], told.get("rest", "")
    name = distribution_of(view.matrix, top)
    if not rest:
        return (
            None
            if is_standard(view, top)
            else _absent(top, name, known=package_facts(view, name) is not None)
        )
    return _Told(
        f"{top} is there, but has no {top}{rest}",
        f"{top}{rest} is not in the {top} that is imported: the code that asks (a recipe, example or config)"
        " is of another time than this release. An older one may have had it (moved, renamed or taken out"
        " since), or it is newer and unreleased, on the main branch alone. Else its installation left out"
        f" subpackages, or a file or folder {top} of one's own is imported in its place.",
        (
            Remedy(
                f"See which {top} is imported.",
                commands("python -c {}", f"import {top}; print({top}.__path__)"),
            ),
            Remedy(
                f"Upgrade {name} (from source or a nightly build where the code is of its main branch), pin"
                " the older release where a new one took it out, or take the example of the installed one.",
                pip_install(name, options="-U") if is_recorded(view, name) else (),
            ),
            Remedy(
                "For a project of your own: install it from source, editable (pip install -e .), and see that"
                " each of its folders has an __init__.py and is listed in the packages of pyproject.toml."
            ),
        ),
    )


def _absent(module: str, name: str, known: bool) -> _Told:
    ways = (
        (Remedy(f"Install {name} with that very interpreter.", pip_install(name)),)
        if known
        else (
            Remedy(
                f"Install what brings {module} as its project's instructions say (from source where no index"
                " has it; some are for Linux alone), or run from the project's root."
            ),
        )
    )
    return _Told(
        f"the module {module} is not installed where this runs",
        f"Python found no {module} on its path: an optional dependency that was left out (an extra, or a"
        " marker for another platform), or another interpreter than the one it was installed for.",
        ways,
    )


def _name(view: View, error: ErrorSeen, told: Mapping[str, str]) -> _Told:
    name, module = told["name"], told["module"]
    top = module.partition(".")[0]
    here, owner = is_standard(view, top), distribution_of(view.matrix, top)
    ways = (
        Remedy(
            "See which file is imported; rename a file of your own that bears that name.",
            commands("python -c {}", f"import {top}; print({top}.__file__)"),
        ),
        Remedy(
            "Take a Python that has the name: it came, or went, with one of its releases."
            if here
            else f"Upgrade {top}, or pin the release from which {name} was still there.",
            () if here or not _has_later(view, owner) else pip_install(owner, options="-U"),
        ),
    )
    cause = (
        f"The {module} that is imported has no {name}: it came or went with another release, or what is"
        " imported is not that module but a file of its name."
    )
    return _Told(f"{module} has no {name} here", cause, ways if here else ways[::-1])


def _has_later(view: View, name: str) -> bool:
    """True where a release is on record that is newer than the one that is told, or none is told."""
    version = view.version(name)
    return is_recorded(view, name) and (version is None or has_newer(view, name, version))


def _member(view: View, error: ErrorSeen, told: Mapping[str, str]) -> _Told | None:
    module, owner = told.get("module", ""), told.get("owner", "")
    what = told.get("member") or told.get("state", "")
    if module and is_standard(view, module):
        return _name(view, error, {"name": what, "module": module})
    if owner in _MEMBERS_OF_PYTHON or owner == "NoneType":
        return None
    subject = module or owner
    lacks = f"{subject} has no {what} here" if "member" in told else f"a {subject} {what} here"
    asking = asking_package(view, error.frames[-1]) if error.frames else ""
    if asking and not module and asking in libraries_with(view.matrix.folder, owner):
        return _own_member(lacks, asking, owner, what)
    return _Told(
        lacks,
        f"The code that asks was written for another release of what has {subject}: names and members come"
        " and go with releases, and a class takes the place of a tuple or dict.",
        (
            Remedy(
                f"Bring the code that asks and the library that has {subject} to releases of one time:"
                " upgrade the older of the two, or downgrade the younger one (below its last major release)."
            ),
        ),
    )


def _own_member(lacks: str, package: str, owner: str, what: str) -> _Told:
    return _Told(
        f"{lacks}, as {package}'s own code finds",
        f"{owner} is of {package} itself: the object was not set up, was reset since, or is of a second copy"
        f" of {package}; mostly by a caller that was written for another release of {package}.",
        (
            Remedy(
                f"Bring {package} and what calls it (the frames above) to releases of one time: upgrade the"
                " older of the two, or downgrade the younger one."
            ),
        ),
    )


def _library(view: View, error: ErrorSeen, told: Mapping[str, str]) -> _Told | None:
    lib = told["lib"]
    if _is_foreign(view, lib):
        return None
    stem = lib.partition(".so")[0]
    asking = asking_package(view, error.frames[-1]) if error.frames else ""
    importing = asking or "the importing package"
    return _Told(
        f"the loader finds no {lib}",
        f"What is imported was linked against {lib}, and no folder that the loader looks into has that very"
        " file: its system package is missing, is of another release (the number behind .so must be the"
        " same), or lies where only LD_LIBRARY_PATH reaches.",
        (
            Remedy(
                "See what asks for it, what this machine has, and which system package brings it.",
                (*commands("ldconfig -p | grep {}", stem), *commands("apt-file search {}", lib)),
            ),
            Remedy(
                "Where the system has another number of it (it was upgraded since): update or rebuild"
                f" {importing} against that, take a release of it that was linked so (pin an older one), or"
                " pip's own wheel in a virtual environment, which brings what it needs."
            ),
            Remedy(
                "Where the file is there: put its folder on the loader's path.",
                ("export LD_LIBRARY_PATH=/folder/of/it:$LD_LIBRARY_PATH",),
            ),
        ),
    )


def _symbol(view: View, error: ErrorSeen, told: Mapping[str, str]) -> _Told | None:
    file, symbol = told["file"], told["symbol"]
    if _is_foreign(view, file):
        return None
    short = file.replace("\\", "/").rpartition("/")[2]
    folder = package_of(file)
    owner = distribution_of(view.matrix, folder) if folder and not folder.endswith(".so") else ""
    owner = owner if package_facts(view, owner) else ""
    whose = f"{short} of {owner}" if owner else short
    exports = exporting(view, symbol)
    other = f"the {exports.what.removeprefix('the ')}" if exports else "the library"
    ways = [
        Remedy(
            "Let the copy that belongs to it come first, or alone: see which is loaded, and take a module"
            " load or LD_LIBRARY_PATH that brings another one out (the environment's own lib folder first).",
            (*commands("ldd {}", file), "echo $LD_LIBRARY_PATH", "unset LD_LIBRARY_PATH"),
        ),
        Remedy("Else bring it and the library that should have the symbol to releases of one time."),
    ]
    if owner:
        text = f"Or upgrade {owner}, import it after what needs the real library, or uninstall it."
        ways.insert(0, Remedy(text, pip_install(owner, options="-U")))
    if exports:
        text = f"Bring {other} to the release that {short} was compiled with: install or upgrade it."
        ways.insert(0, Remedy(text, exports.commands))
    return _Told(
        f"{whose} does not fit {other} that it is loaded with",
        (f"{symbol} is a name that {exports.what} has. {exports.note or ''} " if exports else "")
        + f"{whose} has, or finds, no {symbol}: a stub or an older copy of a shared library stands before the"
        " right one (LD_LIBRARY_PATH, a module load, another package that was imported first), or the two"
        " were built for other releases.",
        tuple(ways),
    )


def _is_foreign(view: View, file: str) -> bool:
    """True for a library of CUDA's where another maker's card runs: no copy of it would help."""
    return foreign_backend(view) is not None and bool(_OF_CUDA.search(file.lower()))


def _program(view: View, error: ErrorSeen, told: Mapping[str, str]) -> _Told:
    program = told["program"].removesuffix(".exe")
    return _Told(
        f"the program {program} is not installed, or not on PATH, where this runs",
        f"A child process should run {program}, and the PATH of this process has none.",
        (
            Remedy(
                f"Install {program} (system, conda or pip package, whichever brings it), or load its module.",
                commands("which {}", program),
            ),
            Remedy(
                "Where it is installed: put its folder on the PATH of the process that fails (a service, a"
                " batch job and a container have their own).",
                ("export PATH=/folder/of/it:$PATH",),
            ),
        ),
    )


_READERS: tuple[tuple[re.Pattern[str], Callable[[View, ErrorSeen, Mapping[str, str]], _Told | None]], ...] = (
    (NONE, _none),
    (_KEYWORD, _keyword),
    (_MODULE, _module),
    (_NAME, _name),
    (_SYMBOL, _symbol),
    (_LIBRARY, _library),
    (_PROGRAM, _program),
    (_MEMBER, _member),
)
