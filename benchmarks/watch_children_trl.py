"""`benchmarks/watch_children.py` with TRL's SFTTrainer: a script that imports it, as a user's would."""

from __future__ import annotations

from trl import SFTConfig, SFTTrainer
from watch_children import main

if __name__ == "__main__":
    raise SystemExit(main((SFTConfig, SFTTrainer)))
