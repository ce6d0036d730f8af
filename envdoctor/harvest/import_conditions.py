"""What a module asks before it imports: Python's version, the system, and which packages are there.

A condition is a PEP 508 marker, or an importable name with a bound (`torch>=2.5`, `torch`; `!` denies it);
several are joined by `and`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

ALWAYS = 'python_version >= "3"'
AND, IF = " and ", " if "
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.GtE: ">=",
    ast.Gt: ">",
    ast.LtE: "<=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_VERSION = ("sys.version_info", "version_info", "sys.version_info[:2]")
_SYSTEM = {
    "sys.platform": "sys_platform",
    "os.name": "os_name",
    "platform.system()": "platform_system",
    "platform.machine()": "platform_machine",
}
_SYSTEMS = {"win": "win32", "linux": "linux", "darwin": "darwin"}
_STARTS = re.compile(r"sys\.platform\.startswith\('(\w+)'\)")
_PRESENT = re.compile(r"is_(\w+?)_available\(\)")
_BOUND = re.compile(r"is_(\w+)_version\('([<>=!]=?)', '(\d[\w.]*)'\)")
_AT_LEAST = re.compile(r"is_(\w+)_greater_or_equal\('(\d[\w.]*)'\)")
_PARSED = re.compile(r"(?:[\w.]*\.)?(?:parse|Version)\((?:(\w+)\.__version__|'(\d[\w.]*)')\)")
_CONDITION = re.compile(r"(!?)([\w.]+?)((?:[<>=!]=?\d[\w.]*)?)$")


def conditions_of(test: ast.expr) -> tuple[str, str]:
    """Return the conditions under which a test holds, and fails; "" where none is known."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        holds, fails = conditions_of(test.operand)
        return fails, holds
    if isinstance(test, ast.BoolOp):
        told = [conditions_of(one)[isinstance(test.op, ast.Or)] for one in test.values]
        joined = AND.join(told) if all(told) else ""
        return ("", joined) if isinstance(test.op, ast.Or) else (joined, "")
    if is_for_types(test):
        return "", ALWAYS
    if isinstance(test, ast.Compare):
        return _compared(test) if len(test.ops) == 1 else ("", "")
    return _called(ast.unparse(test))


def is_for_types(test: ast.expr) -> bool:
    """True for `TYPE_CHECKING`, alone or as one of several that do."""
    ways = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
    return any(ast.unparse(one).rpartition(".")[2] == "TYPE_CHECKING" for one in ways)


def holds(condition: str, marker_holds: Callable[[str], bool], version_of: Callable[[str], str]) -> bool:
    """True where a condition is met; `version_of` an importable name is "" for what is not there.

    What is denied of a package that is not there is not known to hold.
    """
    for part in condition.split(AND):
        if '"' in part:
            if not marker_holds(part):
                return False
            continue
        told = _CONDITION.match(part)
        version = version_of(told[2]) if told else ""
        if told is None or not version or bool(told[1]) is _contains(told[3], version):
            return False
    return True


def _contains(bound: str, version: str) -> bool:
    from envdoctor.specifiers import SpecifierSet

    return not bound or SpecifierSet(bound).contains(version, prereleases=True)


def _compared(test: ast.Compare) -> tuple[str, str]:
    sign, left, right = _SIGNS.get(type(test.ops[0])), ast.unparse(test.left), test.comparators[0]
    if sign is None:
        return "", ""
    if left in _VERSION and isinstance(right, ast.Tuple) and 1 < len(right.elts) < 4:
        return _of_python(sign, right, left.endswith("]"))
    word = str(right.value) if isinstance(right, ast.Constant) else ""
    if left in ("sys.version_info.minor", "sys.version_info[1]") and word.isdigit():
        return _both("python_version", sign, f"3.{word}")
    if left in _SYSTEM and word.isalnum() and sign in ("==", "!="):
        return _both(_SYSTEM[left], sign, word)
    package, bound = _PARSED.fullmatch(left), _PARSED.fullmatch(ast.unparse(right))
    if package and bound and package[1] and bound[2]:
        return f"{package[1]}{sign}{bound[2]}", f"!{package[1]}{sign}{bound[2]}"
    return "", ""


def _of_python(sign: str, told: ast.Tuple, minor: bool) -> tuple[str, str]:
    parts = [one.value for one in told.elts if isinstance(one, ast.Constant) and isinstance(one.value, int)]
    # Whole, version_info has five parts: it equals no pair, and lies above each that it begins with.
    if len(parts) != len(told.elts) or (sign in ("==", "!=", "<=", ">") and not minor):
        return "", ""
    name = "python_version" if len(parts) == 2 else "python_full_version"
    return _both(name, sign, ".".join(map(str, parts)))


def _both(name: str, sign: str, value: str) -> tuple[str, str]:
    return f'{name} {sign} "{value}"', f'{name} {_OPPOSITE[sign]} "{value}"'


def _called(text: str) -> tuple[str, str]:
    if told := _STARTS.fullmatch(text):
        whole = _SYSTEMS.get(told[1])
        return _both("sys_platform", "==", whole) if whole else ("", "")
    if told := _PRESENT.fullmatch(text):
        return told[1], ""
    if told := _BOUND.fullmatch(text):
        return "".join(told.groups()), "!" + "".join(told.groups())
    if told := _AT_LEAST.fullmatch(text):
        return f"{told[1]}>={told[2]}", f"!{told[1]}>={told[2]}"
    return "", ""
