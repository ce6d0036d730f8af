"""Settings and variables that a plan changes: told with their file, and put into the facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.facts import Facts, Setting
from envdoctor.findings import SettingMove
from envdoctor.plan.advice import variables_of
from envdoctor.values import replace

_SPLITS = frozenset(("tp", "tp-size", "tensor-parallel-size"))
_LINE = re.compile(r"line \d+")


def setting_moves(facts: Facts, wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, SettingMove]]:
    """Yield the changes of settings that belong together; a new key goes where the others stand."""
    found = {key: _find(facts, key) for key, _ in wanted}
    files = [file for setting in found.values() if setting and (file := _file_of(setting))]
    lower = any(setting and setting.value in ("true", "false") for setting in found.values())
    for key, told in wanted:
        if _is_of_more_cards(facts, key, told):
            continue
        setting = found[key]
        value = told.lower() if lower and told in ("True", "False") else told
        if setting is None:
            yield key, SettingMove(files[0] if files else None, key, None, value)
        elif setting.value != value:
            yield key, SettingMove(_file_of(setting), setting.native_key or key, setting.value, value)


def _is_of_more_cards(facts: Facts, key: str, told: str) -> bool:
    """True for a model that is split over more cards than are told."""
    return key.replace("_", "-") in _SPLITS and told.isdigit() and int(told) > len(facts.gpus.get() or "1")


def _file_of(setting: Setting) -> str | None:
    """Return the file that a setting was read in; None for a text without a name."""
    file = setting.source.rpartition(": ")[0] or setting.source
    return None if _LINE.fullmatch(file) else file


def _find(facts: Facts, key: str) -> Setting | None:
    plain = key.replace("-", "_").lower()
    named = (s for s in reversed(facts.settings) if plain in (s.key, (s.native_key or "").replace("-", "_")))
    return next(named, None)


def with_settings(facts: Facts, moves: Sequence[SettingMove], shell: Sequence[str]) -> Facts:
    """Return the facts with settings and variables as they shall be."""
    new = {move.key: move.new for move in moves}
    changed = [
        replace(s, value=new[key]) if (key := s.native_key or s.key) in new else s for s in facts.settings
    ]
    changed += [Setting(m.key.replace("-", "_"), m.new, "the plan", m.key) for m in moves if m.old is None]
    told = variables_of(shell)
    variables = {**facts.variables, **told}
    kept = {name: value for name, value in variables.items() if value is not None}
    astray = {name: why for name, why in facts.astray.items() if name not in told}
    return replace(facts, settings=tuple(changed), variables=kept, astray=astray)
