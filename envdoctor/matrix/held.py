"""Which class an attribute of a library's class holds, and which one a call yields: a generated table."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache

from envdoctor.fact_files import Folder, read_file

FILE_NAME = "held.json"


@cache
def load_held(folder: Folder) -> Mapping[str, Mapping[str, str]]:
    """Return by library what `Owner.attribute`, `Owner.method()` and `function()` are: `Class` or `[Class]`."""
    try:
        found: Mapping[str, Mapping[str, str]] = json.loads(
            read_file(os.path.join(folder, "releases", FILE_NAME))
        )
    except (OSError, ValueError):
        return {}
    return found
