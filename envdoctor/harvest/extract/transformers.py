"""transformers: the minimums it enforces at run time, which its metadata does not declare.

Read from the source inside the wheel by its syntax tree, never by importing it. How a minimum is enforced:
`import` (importing transformers fails), `disabled` (the feature reports itself absent), `use` (the feature
raises when it is used). `declared` is the table that its extras are made from.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from packaging.version import Version

from envdoctor.fetch import Fetcher
from envdoctor.harvest.extract.wheels import linux_wheels
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.harvest.remote_archive import BadArchive, RemoteZip
from envdoctor.python_source import parse_python

_TABLE = "transformers/dependency_versions_table.py"
_CHECK = "transformers/dependency_versions_check.py"
_IMPORTS = "transformers/utils/import_utils.py"
_USES = {
    "peft": ("transformers/integrations/peft.py",),
    "bitsandbytes": (
        "transformers/quantizers/quantizer_bnb_4bit.py",
        "transformers/utils/quantization_config.py",
    ),
    "deepspeed": ("transformers/integrations/deepspeed.py", "transformers/deepspeed.py"),
}
_FUNCTIONS = {
    "torch": "is_torch_available",
    "accelerate": "is_accelerate_available",
    "bitsandbytes": "is_bitsandbytes_available",
    "kernels": "is_kernels_available",
    "torchao": "is_torchao_available",
    "triton": "is_triton_available",
    "flash-attn": "is_flash_attn_2_available",
    "liger-kernel": "is_liger_kernel_available",
    "compressed-tensors": "is_compressed_tensors_available",
    "auto-round": "is_auto_round_available",
    "schedulefree": "is_schedulefree_available",
    "mistral-common": "is_mistral_common_available",
    "hqq": "is_hqq_available",
    "vptq": "is_vptq_available",
}
_VERSION = re.compile(r"\d+(\.\d+)*([abrc]+\d+|\.post\d+)?")


def covers(version: str) -> bool:
    """Return True from 4.16 on, where the checks have stood in `utils/import_utils.py`."""
    return Version(version) >= Version("4.16")


def read(fetcher: Fetcher, files: Sequence[IndexFile]) -> dict[str, Any]:
    """Return `requires`, `kind` and `declared` of one release, or `{"reason": ...}`; raises Unavailable."""
    wheel = linux_wheels(files).get("x86_64")
    if wheel is None:
        return {"reason": "no wheel"}
    try:
        archive = RemoteZip(fetcher, wheel.url)
        wanted = {_TABLE, _CHECK, _IMPORTS, *(path for paths in _USES.values() for path in paths)}
        sources = {
            n: archive.read(n).decode("utf-8", "replace") for n in sorted(wanted & set(archive.members))
        }
        return parse_sources(sources) | {"source": wheel.source}
    except (BadArchive, SyntaxError, ValueError, RecursionError) as problem:
        return {"reason": str(problem), "source": wheel.source}


def parse_sources(sources: Mapping[str, str]) -> dict[str, Any]:
    """Return the run-time minimums in a release's source files, by member name; raises SyntaxError."""
    trees = {name: parse_python(text) for name, text in sources.items()}
    declared = _declared(trees[_TABLE]) if _TABLE in trees else {}
    requires: dict[str, str] = {}
    kind: dict[str, str] = {}
    for name, specifier, how in _enforced(trees, declared):
        if name not in requires and specifier:
            requires[name], kind[name] = specifier, how
    return {"requires": requires, "kind": kind, "declared": declared}


def _enforced(trees: Mapping[str, ast.Module], declared: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Give each (name, specifier, kind), the one that strikes first before the others."""
    checked = _checked_at_import(trees.get(_CHECK))
    if _IMPORTS in trees:
        for name, specifier in _disabling(trees[_IMPORTS]).items():
            yield name, specifier, "disabled"
    for name in checked:
        yield name, declared.get(name, ""), "import"
    for name, paths in _USES.items():
        for tree in (trees[path] for path in paths if path in trees):
            yield name, _used_minimum(tree, name, declared), "use"


def _declared(tree: ast.Module) -> dict[str, str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and _names(node) == ["deps"]:
            table = ast.literal_eval(node.value)
            return {name: line[len(name) :].strip() for name, line in table.items() if line != name}
    return {}


def _names(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


def _checked_at_import(tree: ast.Module | None) -> list[str]:
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and "pkgs_to_check_at_runtime" in _names(node):
            strings = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
            return [name for text in strings if isinstance(text, str) for name in text.split()]
    return []


def _constants(tree: ast.AST) -> dict[str, str]:
    return {
        name: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and _VERSION.fullmatch(node.value.value)
        for name in _names(node)
    }


def _disabling(tree: ast.Module) -> dict[str, str]:
    constants = _constants(tree)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = {
        name: _bounds(_cuda_branch(functions[function]), constants)
        for name, function in _FUNCTIONS.items()
        if function in functions
    }
    found["torch"] = found.get("torch") or _torch_assignment(tree, constants)
    return {name: specifier for name, specifier in found.items() if specifier}


def _cuda_branch(function: ast.FunctionDef) -> ast.AST:
    """Return the part of a check that concerns CUDA, where the check tells vendors apart."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "torch.version.cuda":
            return ast.Module(node.body, [])
    return function


def _torch_assignment(tree: ast.Module, constants: Mapping[str, str]) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _names(node) == ["_torch_available"]:
            bounds = _bounds(node.value, constants)
            if bounds:
                return bounds
    return ""


def _bounds(node: ast.AST, constants: Mapping[str, str]) -> str:
    """Return the specifier of the versions that a check lets pass, from its defaults and comparisons."""
    local = {**constants, **_defaults(node, constants)}
    lower = [v for op, v in _comparisons(node, local) if op == ">="]
    upper = [v for op, v in _comparisons(node, local) if op == "<"]
    parts = [f">={max(lower, key=Version)}"] if lower else []
    parts += [f"<{min(upper, key=Version)}"] if upper else []
    return ",".join(parts)


def _defaults(node: ast.AST, constants: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(node, ast.FunctionDef):
        return {}
    named = [argument.arg for argument in node.args.args][-len(node.args.defaults or ()) :]
    values = [_literal(default, constants) for default in node.args.defaults]
    return {name: value for name, value in zip(named, values, strict=False) if value}


def _literal(node: ast.expr, constants: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if _VERSION.fullmatch(node.value) else ""
    return constants.get(node.id, "") if isinstance(node, ast.Name) else ""


def _comparisons(node: ast.AST, constants: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Give what each comparison lets pass: `x < parse("2")` that refuses, and `x >= parse("2")` that returns.

    A lower bound is written either way; an upper bound is taken only from `x < parse(NAME_MAX...)`.
    """
    for compared in (n for n in ast.walk(node) if isinstance(n, ast.Compare) and len(n.ops) == 1):
        right = compared.comparators[0]
        if not isinstance(right, ast.Call) or not right.args:
            continue
        value = _literal(right.args[0], constants)
        bound = right.args[0].id if isinstance(right.args[0], ast.Name) else ""
        if value and isinstance(compared.ops[0], ast.Lt) and "max" in bound.lower():
            yield "<", value
        elif value and isinstance(compared.ops[0], (ast.Lt, ast.GtE)):
            yield ">=", value


def _used_minimum(tree: ast.Module, name: str, declared: Mapping[str, str]) -> str:
    constants = _constants(tree)
    if name == "peft":
        minimum = constants.get("MIN_PEFT_VERSION")
        return f">={minimum}" if minimum else ""
    if name == "deepspeed":
        return declared.get(name, "") if _calls(tree, "dep_version_check", name) else ""
    return _refused_below(tree, name, constants)


def _calls(tree: ast.Module, function: str, argument: str) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == function
        and any(isinstance(a, ast.Constant) and a.value == argument for a in node.args)
        for node in ast.walk(tree)
    )


def _refused_below(tree: ast.Module, name: str, constants: Mapping[str, str]) -> str:
    """Return the highest minimum below which an `if` on this package's version raises."""
    minimums = [
        value
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and any(isinstance(n, ast.Raise) for n in node.body)
        if f"version('{name}')" in ast.unparse(node.test)
        for op, value in _comparisons(node.test, constants)
        if op == ">="
    ]
    return f">={max(minimums, key=Version)}" if minimums else ""
