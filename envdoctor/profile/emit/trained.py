"""What is trained and what steps it, where that is neither all, LoRA nor a plain optimizer: each framework's
words for it, as its release at hand has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from envdoctor.errors import InputError
from envdoctor.memory.methods import METHODS
from envdoctor.memory.optimizer import find_optimizer

if TYPE_CHECKING:
    from envdoctor.profile.emit.plan import Plan
    from envdoctor.profile.workload import Choice

DRAWN_EVERY = 20
"""Steps after which LISA draws other layers."""
USUAL = ("full", "lora", "qlora")
PROJECTED = ("attn", "mlp")
"""Parts of names of the modules whose linears are projected, as the packages' own pages name them."""


def words(plan: Plan, framework: str) -> dict[str, Any]:
    """Return what a framework's file says of an unusual method or optimizer; raises InputError where it has
    no words for it."""
    choice = plan.choice
    found: dict[str, Any] = {}
    if choice.method not in USUAL:
        write = _METHODS.get(framework, {}).get(choice.method)
        if write is None:
            raise InputError(f"--for {framework}: it has no --method {choice.method}{_those(choice.method)}")
        found |= write(choice)
    optimizer = find_optimizer(choice.optim)
    if optimizer.matrices or optimizer.layerwise:
        found |= _OPTIMIZERS.get(framework, _by_name)(choice)
    for key in found:
        if framework != "transformers" and not plan.names.has(framework, key):
            raise InputError(f"--for {framework}: its release has no {key}")
    return found


def _those(method: str) -> str:
    known = [name for name, methods in _METHODS.items() if method in methods]
    return f"; {', '.join(known)} {'has' if len(known) == 1 else 'have'}" if known else ""


def active_layers(choice: Choice) -> int:
    """Return how many layers are trained at a time."""
    return choice.trained_layers or METHODS[choice.method].trained


def rank(choice: Choice) -> int:
    """Return the rank of a projecting optimizer."""
    return choice.optim_rank or find_optimizer(choice.optim).rank


def _by_name(choice: Choice) -> dict[str, Any]:
    """transformers' own names."""
    if not rank(choice):
        return {}
    return {"optim_target_modules": list(PROJECTED), "optim_args": f"rank={rank(choice)}"}


def _llamafactory(choice: Choice) -> dict[str, Any]:
    family = choice.optim.partition("_")[0]
    base = "adamw_8bit" if "8bit" in choice.optim else "adamw_torch"
    if family in ("galore", "apollo"):
        layerwise = find_optimizer(choice.optim).layerwise
        return {
            f"use_{family}": True, f"{family}_rank": rank(choice), f"{family}_target": ",".join(PROJECTED),
            f"{family}_layerwise": layerwise, "optim": base,
        }  # fmt: skip
    if choice.optim in ("adam_mini", "muon"):
        return {f"use_{choice.optim}": True, "optim": base}
    return {"optim": choice.optim}


def _ms_swift(choice: Choice) -> dict[str, Any]:
    if choice.optim == "muon":
        return {"optimizer": "muon", "optim": "adamw_torch"}
    if choice.optim.startswith("galore"):
        layerwise = find_optimizer(choice.optim).layerwise
        return {
            "use_galore": True, "galore_rank": rank(choice), "galore_optim_per_parameter": layerwise,
            "optim": "adamw_8bit" if "8bit" in choice.optim else "adamw_torch",
        }  # fmt: skip
    return _by_name(choice)


_OPTIMIZERS: Mapping[str, Callable[[Choice], dict[str, Any]]] = {
    "llamafactory": _llamafactory,
    "ms-swift": _ms_swift,
}


def _tuned(choice: Choice, kind: str) -> dict[str, Any]:
    """peft's configuration of what stands beside frozen weights."""
    tokens = choice.virtual_tokens or METHODS[choice.method].virtual
    more = {"num_virtual_tokens": tokens} if tokens else {}
    return {kind: {"task_type": "CAUSAL_LM", **more}}


_METHODS: Mapping[str, Mapping[str, Callable[[Choice], dict[str, Any]]]] = {
    "transformers": {
        "ia3": lambda choice: _tuned(choice, "ia3_config"),
        "prompt": lambda choice: _tuned(choice, "prompt_tuning_config"),
        "prefix": lambda choice: _tuned(choice, "prefix_tuning_config"),
    },
    "llamafactory": {
        "freeze": lambda choice: {
            "finetuning_type": "freeze",
            "freeze_trainable_layers": active_layers(choice),
            "freeze_trainable_modules": "all",
        },
        "badam": lambda choice: {
            "finetuning_type": "full",
            "use_badam": True,
            "badam_mode": "layer",
        },
    },
    "axolotl": {
        "lisa": lambda choice: {
            "lisa_n_layers": active_layers(choice),
            "lisa_step_interval": DRAWN_EVERY,
            "lisa_layers_attribute": "model.layers",
        },
    },
    "ms-swift": {
        "lisa": lambda choice: {
            "lisa_activated_layers": active_layers(choice),
            "lisa_step_interval": DRAWN_EVERY,
        },
    },
}
