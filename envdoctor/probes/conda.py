"""What conda installed into an environment, from the names in its `conda-meta` folder."""

from __future__ import annotations

import re

from .distributions import normalize
from .files import list_names
from .machine import Json
from .typed import Dict, List

FILE = r"(.+)-([^-]+)-[^-]+\.json"
NATIVE = r"cuda|cudnn|nccl|^(lib)?torch|pytorch|magma|^gcc|^gxx|^libstdcxx|^mkl$|^openmpi$|^libcu"


def read_conda(prefix: str) -> Dict[str, str]:
    """Return the versions of conda's packages by normalized name; raises Unreadable."""
    matches = [re.fullmatch(FILE, name) for name in list_names(prefix + "/conda-meta")]
    return {normalize(match.group(1)): match.group(2) for match in matches if match}


def add_conda(distributions: Dict[str, Json], packages: Dict[str, str]) -> List[str]:
    """Mark what conda installed, add its native CUDA packages, and return where pip replaced conda's copy."""
    replaced = []
    for name, version in packages.items():
        one = distributions.get({"pytorch": "torch", "pytorch-gpu": "torch"}.get(name, name))
        if one is None:
            if re.search(NATIVE, name):
                distributions[name] = {
                    "name": name,
                    "version": version,
                    "source": "conda-meta",
                    "origin": "conda",
                }
        elif one.get("version", "").partition("+")[0] == version:
            one["origin"] = "conda"
        elif one.get("installer") in ("pip", "uv"):
            text = "%s: conda installed %s, then %s put %s over it"
            replaced.append(text % (one["name"], version, one["installer"], one.get("version")))
    return replaced
