"""The figures that depend on versions and cards, read from the matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType

from packaging.version import InvalidVersion, Version

from envdoctor.facts.quantities import MIB
from envdoctor.matrix import tables
from envdoctor.specifiers import SpecifierSet
from envdoctor.values import dataclass

PARTS = ("logits", "layer", "gradients", "kept", "table", "buffers", "scores", "stacks", "allocated")


@dataclass(frozen=True, slots=True)
class ReservedBound:
    """How much of each part of a run may lie reserved beside what is allocated, and a margin on the sum."""

    logits: float = 1.0
    layer: float = 1.0
    gradients: float = 0.5
    kept: float = 0.1
    table: float = 2.0
    buffers: float = 1.0
    scores: float = 2.5
    stacks: float = 1.0
    allocated: float = 0.0
    margin: float = 0.05


@dataclass(frozen=True, slots=True)
class Constants:
    """Figures of one stack on one card; bytes unless the name says otherwise."""

    cublas_workspace: int = 32 * MIB
    cuda_context: int = 760 * MIB
    int8_context: int = 64 * MIB
    nccl_ddp: int = 845 * MIB
    nccl_fsdp: int = 845 * MIB
    nccl_zero3: int = 1045 * MIB
    nccl_zero12: int = 1336 * MIB
    loss_upcasts: int = 1  # 1 when the loss makes an fp32 copy of the logits
    fsdp_version: int = 2  # from 2 on 4-bit weights lie whole on each card before they are sharded
    vllm_context: int = 700 * MIB
    vllm_parallel: int = 0  # buffers of cards that split each layer
    vllm_graphs_inside: int = 1  # 1 when the share that the engine may take counts its graphs
    vllm_marlin: int = 1  # 1 when experts of four bits lie as its kernels want them
    vllm_logit_bytes: int = 14  # of one logit while vLLM profiles its sampling
    vllm_graph_layer: int = 0  # bytes of the graphs of one layer, where they were measured
    vllm_keeps_experts: int = 1  # 1 when what 16-bit experts worked in is kept after profiling
    vllm_keeps_fp8_experts: int = 1
    vllm_expert_slots: int = 1  # 1 when adapters may be on experts
    vllm_table_slots: int = 1  # 1 when those of Qwen 3 may be on its embedding and head
    vllm_added_tokens: int = 0  # that an adapter may add to the vocabulary
    vllm_utilization_percent: int = 92
    grpo_utilization_percent: int = 30
    sglang_before: int = 950 * MIB  # gone of a card before SGLang loads a model
    sglang_parallel: int = 100 * MIB  # and of cards that split each layer
    sglang_loaded: int = 150 * MIB  # beside the weights, once they are loaded
    sglang_window_percent: int = 0  # tokens of a pool for layers with a window, where they have one
    reserved: Mapping[str, ReservedBound] = field(default_factory=lambda: MappingProxyType({}))
    rows: tuple[str, ...] = ()

    def nccl(self, parallel: str) -> int:
        """Bytes of NCCL's communicators under a way of sharding."""
        known = {"fsdp": self.nccl_fsdp, "zero3": self.nccl_zero3}
        if parallel in ("zero1", "zero2"):
            return self.nccl_zero12
        return known.get(parallel, self.nccl_ddp)


def read_constants(
    rows: Iterable[tables.MemoryRow],
    stack: Mapping[str, str] | None = None,
    capability: tuple[int, int] | None = None,
) -> Constants:
    """Pick from `[[memory]]` rows those that hold for these versions and this compute capability.

    A row whose condition names something that is not known does not hold; the last that holds wins.
    """
    chosen: dict[str, int] = {}
    bounds: dict[str, ReservedBound] = {}
    used: dict[str, str] = {}
    for row in rows:
        if not _holds(row.when, stack or {}, capability):
            continue
        if row.sharding is not None:
            bounds[row.sharding] = _bound(row)
            used[f"reserved {row.sharding}"] = row.id
        elif row.value is not None:
            chosen[row.constant] = row.value
            used[row.constant] = row.id
    return Constants(**chosen, reserved=MappingProxyType(bounds), rows=tuple(sorted(used.values())))


def _bound(row: tables.MemoryRow) -> ReservedBound:
    return ReservedBound(**{part: getattr(row, part) for part in (*PARTS, "margin")})


def _holds(when: Mapping[str, str], stack: Mapping[str, str], capability: tuple[int, int] | None) -> bool:
    for name, wanted in when.items():
        if name == "compute_capability":
            if capability is None or Version("{}.{}".format(*capability)) not in SpecifierSet(wanted):
                return False
        elif name not in stack or not _within(stack[name], wanted):
            return False
    return True


def _within(version: str, wanted: str) -> bool:
    try:
        return SpecifierSet(wanted).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False
