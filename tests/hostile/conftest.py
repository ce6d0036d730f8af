"""Makes the attacks of this folder, and the index that can fail, importable by its tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "harvest")]
