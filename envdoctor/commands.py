"""The one place where what a user is told to type is built: a value in a command is a word, never syntax."""

from __future__ import annotations

from collections.abc import Mapping

from envdoctor import lazy_re as re

# What no shell changes, wherever it stands; a leading `~` or `=` would be expanded, a leading `-` an option.
_INERT = re.compile(r"[\w@%+:,./][\w@%+:,./=~-]*", re.ASCII)
# What double quotes, which every shell has, keep as it is.
_PLAIN = re.compile(r"[\w@%+:,./=~<>()\[\]{};&|*?'# -]|!(?==)", re.ASCII)
_NOT_INSTALLED = frozenset({"nvidia-driver", "python"})
"""What pins may name and pip does not install."""
ANY = ">=0"
"""The pin of a distribution of which every release will do."""
_WRITTEN = re.compile(
    # an option, a JSON or YAML key, a directive; `key = value`, `key: value`; a call; `key=value`
    r"""[-"'\[{}#@<%]|/set |[\w.\[\]"'-]+(?: ?[+|]?= | ?:(?: |$))|[A-Za-z_][\w.]*\(|[a-z_][\w.]*=|"""
    r"(?:from \S+ import|import|FROM|RUN|ENV|for|if|with) ",
)
_WORD = re.compile(r"""([^ \t\r\n'"\\]+)|'([^'"\\]*)'|"([^'"\\]*)\"""")
"""A word of a command that needs no shell's rules to be read."""
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|^-")


class NoCommand(ValueError):
    """A value cannot stand in a command."""


def command(template: str, *values: object) -> str:
    """Return `template` with each `{}` filled by a value as one quoted word.

    Raises NoCommand where one cannot be quoted so that a program takes it for what it is.
    """
    return template.format(*(quoted(str(value)) for value in values))


def commands(template: str, *values: object) -> tuple[str, ...]:
    """Return the command, or none where a value cannot stand in one."""
    try:
        return (command(template, *values),)
    except NoCommand:
        return ()


def quoted(value: str) -> str:
    """Return a value as one word of a shell.

    Raises NoCommand for one with control characters, and for one that a program would take for an option.
    """
    if _UNFIT.search(value):
        raise NoCommand(f"unfit for a command: {value[:40]!r}")
    if _INERT.fullmatch(value):
        return value
    if value and not _PLAIN.sub("", value):
        return f'"{value}"'
    import shlex

    return shlex.quote(value)


def words_of(line: str) -> list[str]:
    """Return the words of a command as a shell reads them; raises ValueError where a quote is left open."""
    plain = list(_WORD.finditer(line))
    if " ".join(word[0] for word in plain) == " ".join(line.split()):  # shlex takes a hundred times as long
        return [word[1] or word[2] or word[3] or "" for word in plain]
    import shlex

    return shlex.split(line)


def is_typed(line: str) -> bool:
    """True for what a shell runs; False for an option, a setting or code: written where it belongs."""
    return _WRITTEN.match(line) is None


def prompted(line: str) -> str:
    """Return a line of a remedy as shown: `$ ` before what a shell runs, `| ` before what is written."""
    return f"{'$' if is_typed(line) else '|'} {line}"


def is_inert(value: str) -> bool:
    """True for a value that is one word wherever it stands in a command, between quotes included."""
    return _INERT.fullmatch(value) is not None


def pip_install(*requirements: str, options: str = "") -> tuple[str, ...]:
    """Return the call of pip that installs `requirements`; none when there are none.

    `options` are words of our own, such as `--force-reinstall`.
    """
    if not requirements:
        return ()
    call = f"pip install {options}".rstrip()
    return commands(call + " {}" * len(requirements), *requirements)


def install_commands(pins: Mapping[str, str]) -> tuple[str, ...]:
    """Return what to type so that the pins hold; nothing for what no installer installs."""
    asked = {name: "" if spec == ANY else spec for name, spec in pins.items() if name not in _NOT_INSTALLED}
    return pip_install(*(f"{name}{spec}" for name, spec in asked.items()))
