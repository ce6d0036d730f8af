"""Judging: pure functions from facts and matrix to findings. One file a family, one line here."""

from __future__ import annotations

from envdoctor.rules import (
    abi,
    arch,
    architectures,
    arguments,
    attention,
    attributes,
    bitsandbytes,
    driver,
    dtype,
    extensions,
    fit,
    host,
    installs,
    interfaces,
    libcuda,
    libraries,
    minimums,
    modules,
    pairs,
    requirements,
    settings_data,
    settings_files,
    settings_fit,
    settings_relations,
    smokes,
    unread,
    wheels,
)
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.runner import run_checks

RULES: tuple[Rule, ...] = (
    *driver.RULES,
    *arch.RULES,
    *architectures.RULES,
    *arguments.RULES,
    *attributes.RULES,
    *pairs.RULES,
    *libcuda.RULES,
    *libraries.RULES,
    *host.RULES,
    *dtype.RULES,
    *attention.RULES,
    *abi.RULES,
    *bitsandbytes.RULES,
    *extensions.RULES,
    *fit.RULES,
    *installs.RULES,
    *interfaces.RULES,
    *minimums.RULES,
    *modules.RULES,
    *requirements.RULES,
    *settings_data.RULES,
    *settings_files.RULES,
    *settings_fit.RULES,
    *settings_relations.RULES,
    *smokes.RULES,
    *wheels.RULES,
    unread.UNREAD,
)

__all__ = ["RULES", "Rule", "Skip", "run_checks"]
