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
    """Return `Class` or `[Class]` by library and `Owner.attribute`, `Owner.method()` or `function()`."""
    try:
        data = read_file(os.path.join(folder, "releases", FILE_NAME))
        found: Mapping[str, Mapping[str, str]] = json.loads(data)
    except (OSError, ValueError):
        return {}
    return found
