"""Environment variables: the allocator's settings under the name that the torch at hand reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envdoctor.profile.search import rows_of

if TYPE_CHECKING:
    from envdoctor.profile.emit.plan import Plan


def allocator_variable(plan: Plan, framework: str) -> str:
    """Return the variable's name: torch 2.10 took up the name without CUDA in it.

    axolotl sets what it finds unset of both, and rounds requests up by the older one where only the newer is.
    """
    older = framework == "axolotl" or plan.work.stack.within("torch", "<2.10")
    return "PYTORCH_CUDA_ALLOC_CONF" if older else "PYTORCH_ALLOC_CONF"


def variables(plan: Plan, framework: str = "") -> dict[str, str]:
    """Return the variables that a framework's run of this setting should have."""
    found = {}
    if plan.choice.alloc_conf:  # none beside vLLM, whose memory pools refuse expandable segments
        found[allocator_variable(plan, framework)] = plan.choice.alloc_conf
    if plan.choice.parallel == "fsdp" and plan.choice.offload_params:
        # accelerate's launcher sets these; without them the process group has no backend for host memory
        found |= {"ACCELERATE_USE_FSDP": "true", "FSDP_OFFLOAD_PARAMS": "true"}
    if plan.choice.vllm_mode == "server":
        cards = len(plan.work.cards)
        found["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(cards - plan.choice.gpus, cards)))
    return found


def emit(plan: Plan, framework: str = "") -> dict[str, str]:
    """Return `env.sh`, to be sourced before the run; no file when nothing is to be set."""
    lines = [f"export {name}={value}" for name, value in variables(plan, framework).items()]
    rows = [f"# {rows_of(plan.work)}"] if lines and plan.work.uneven else []
    return {"env.sh": "\n".join((*rows, *lines)) + "\n"} if lines else {}
