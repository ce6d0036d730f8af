"""Rows for predictions of memory and speed: measured and published figures, and shapes of models."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Capability, Row, Text, fact

Constant = Literal[
    "cublas_workspace", "cuda_context", "int8_context", "nccl_ddp", "nccl_fsdp", "nccl_zero3", "nccl_zero12",
    "loss_upcasts", "fsdp_version", "vllm_context", "vllm_logit_bytes", "vllm_utilization_percent",
    "vllm_parallel", "vllm_graphs_inside", "vllm_marlin", "vllm_graph_layer", "vllm_keeps_experts",
    "vllm_keeps_fp8_experts", "vllm_expert_slots", "vllm_table_slots", "vllm_added_tokens",
    "grpo_utilization_percent", "sglang_before", "sglang_parallel", "sglang_loaded",
    "sglang_window_percent", "reserved",
]  # fmt: skip

Task = Literal["sft", "pretrain", "dpo", "kto", "orpo", "reward", "grpo", "ppo", "rloo", "distill"]
Loss = Literal[
    "full", "logprobs", "softmax", "kernel", "checkpointed", "tiled", "divergence", "score", "value",
]  # fmt: skip

CONFIG_KEY = forms.Form(
    "config key",
    "a key of config.json",
    lambda key: None if re.fullmatch(r"[A-Za-z_]\w*", key) else f"{key!r} is no key of a config.json",
)


@fact
class MemoryRow(Row):
    """A figure that depends on versions or on the card; of those that hold, the last wins.

    `reserved` has the shares of each part of a run that may lie reserved beside what is allocated; every
    other constant has one `value`.
    """

    KIND: ClassVar = "memory"

    constant: Constant
    """Which figure it is."""
    when: Annotated[Mapping[str, str], forms.STACK] = field(default_factory=dict)
    """Bounds on packages or on `compute_capability`; what is not known does not hold."""
    value: int | None = None
    """Bytes, unless the constant's name says otherwise."""
    sharding: Literal["plain", "zero12", "zero3", "fsdp"] | None = None
    """Of `reserved`: the way of sharding."""
    logits: float = 0.0
    """Share of the logits."""
    layer: float = 0.0
    """Share of a layer's activations."""
    gradients: float = 0.0
    """Share of the gradients."""
    kept: float = 0.0
    """Share of what is kept for the backward pass."""
    table: float = 0.0
    """Share of the largest table of weights."""
    buffers: float = 0.0
    """Share of the communication buffers."""
    allocated: float = 0.0
    """Share of all that is allocated."""
    stacks: float = 0.0
    """Share of a layer's stacks of experts, where they are trained."""
    scores: float = 0.0
    """Share of the attention's scores."""
    margin: float = 0.0
    """Added to the sum, as a share of it."""

    def problem(self) -> str | None:
        """`reserved` has a sharding, all others have a value."""
        if self.constant == "reserved":
            return None if self.sharding and self.value is None else "reserved needs sharding, and no value"
        return (
            None
            if self.value is not None and self.sharding is None
            else f"{self.constant} needs a value alone"
        )


@fact
class TrainerRow(Row):
    """What a trainer's release does in one step of a task; rows that hold are merged, later ones winning.

    What a row leaves out stays as it was; the fields are those of `envdoctor.memory.recipes.Recipe`.
    """

    KIND: ClassVar = "trainer"

    trainer: Literal["transformers", "trl", "llamafactory", "ms-swift", "axolotl"]
    """Whose step."""
    tasks: tuple[Task, ...]
    """In which tasks."""
    when: Annotated[Mapping[str, str], forms.STACK] = field(default_factory=dict)
    """Bounds on releases; one that is not known counts as the newest."""
    loss: Loss | None = None
    """How the loss is computed."""
    chunk_tokens: int | None = None
    """Tokens of a chunk or a tile of the loss."""
    chunk_columns: int | None = None
    """Columns of the vocabulary in a tile."""
    head_fp32: bool | None = None
    """True when the head's product is raised to fp32."""
    scored: Literal["all", "completion", "answers"] | None = None
    """The tokens whose logits are kept."""
    texts: int | None = None
    """Texts of a sample."""
    apart: bool | None = None
    """True when the texts of a sample go through the model one after the other."""
    reference: Literal["", "beside", "before"] | None = None
    """When the reference model is asked: while the policy's graph is alive, or before."""
    reference_fp32: bool | None = None
    """True when a second model that is the reference is loaded in fp32."""
    judged: bool | None = None
    """True when a reward model scores the texts, and a value model is trained whole beside the policy."""
    aside: int | None = None
    """Copies of the policy's logits, answer by answer, kept to log from while it is asked."""
    aside_reference: int | None = None
    """Such copies of the reference's logits."""
    held: int | None = None
    """fp32 copies of all logits that are kept until the loss is done."""
    held_reference: int | None = None
    """Such copies of the reference's logits."""
    logged: Literal["", "logits", "entropy", "answers", "desired", "alike"] | None = None
    """What is copied once more to be logged."""
    nll: bool | None = None
    """True when the cross entropy of the chosen texts is added."""
    temperature: bool | None = None
    """True when logits are divided by a temperature."""
    divides_view: bool | None = None
    """True when that is done in place, on a view of them."""
    generates: bool | None = None
    """True when the step generates text."""
    kbit_upcast: bool | None = None
    """True when small weights of a quantised model are raised to fp32."""
    adapters_low: bool | None = None
    """True when adapters are kept in 16 bits."""
    adapter_kernels: Literal["plain", "dropout"] | None = None
    """Which LoRA's layers kernels of the trainer's own compute, unless experts are among them: those of plain
    adapters, or those that drop of their input as well."""
    lora_dropout: float | None = None
    """What adapters drop of their input, unless told otherwise."""
    full_fp32: bool | None = None
    """True when full training holds its weights in fp32."""
    outer_fp32: bool | None = None
    """True when full training holds embedding, head and norms in fp32, unless FlashAttention is used."""
    packed: bool | None = None
    """True when samples share one sequence."""
    padded: bool | None = None
    """True when batches are filled up to a round length, beyond their longest row."""
    expandable_segments: bool | None = None
    """True when the trainer has torch's segments grow, unless told otherwise."""
    grad_ckpt: bool | None = None
    """True when activations are computed again, unless told otherwise."""
    frozen_tower: bool | None = None
    """True when towers, and what leads to the decoder, are kept out of training, unless told otherwise."""
    built_on: Annotated[str, forms.VERSION] | None = None
    """The release of the trainer it is built on that is asked for, which counts where none is told."""


@fact
class OptimizerRow(Row):
    """An optimizer by the name that trainers take for it: its states, how they are kept, how it steps."""

    KIND: ClassVar = "optimizer"

    name: Text
    """As `--optim` takes it: transformers' name, or the method's."""
    states: int = 2
    """States of a weight."""
    kept: Literal["same", "fp32", "8bit", "factored"] = "same"
    """In which format: of the weight, wider, in blocks, or as sums of rows and columns."""
    foreach: int = 0
    """Lists of all tensors' size that a step makes."""
    ready: bool = False
    """True when states are made with the optimizer, before the first step."""
    paged: bool = False
    """True when states lie in memory that the host shares."""
    matrices: Literal["", "projected", "drawn", "rows", "momentum"] = ""
    """What the states of a matrix are instead: those of a projection of its gradient (by a decomposition, or
    drawn by lot), a second moment for each row or head, or a momentum that is made orthogonal."""
    rank: int = 0
    """Of a projection, unless told."""
    layerwise: bool = False
    """True when each weight is stepped as soon as its gradient is there, which then goes."""
    package: str = ""
    """The distribution that it needs beside torch and bitsandbytes."""
    trainers: tuple[Literal["transformers", "trl", "llamafactory", "ms-swift", "axolotl"], ...] = ()
    """Those that have it; empty for all that take transformers' names."""
    measured: bool = True
    """False when its terms are as the source says, and no run was measured."""


@fact
class ScaledRow(Row):
    """Which linears of a type of model IA3 scales where nobody names them."""

    KIND: ClassVar = "scaled"

    model_types: tuple[Text, ...]
    """As config.json has them."""
    results: tuple[str, ...]
    """Those whose result is scaled, without the ending `_proj`."""
    inputs: tuple[str, ...]
    """Those whose input is."""


@fact
class ModelRow(Row):
    """A model's shape, as its config.json has it."""

    KIND: ClassVar = "model"

    name: Text
    """In lower case, without organisation and edition."""
    config: Mapping[Annotated[str, CONFIG_KEY], Any]
    """The keys of config.json that the shape needs; of a traced family all that a model is built of."""
    parameters_b: float | None = None
    """10⁹ parameters, as published, where they are."""
    hub: str = ""
    """The Hub's id, where the source is not its page."""


@fact
class TextPartRow(Row):
    """What the text part of a model of several parts leaves out of its config.json."""

    KIND: ClassVar = "text_part"

    model_type: Text
    """The part's."""
    config: Mapping[Annotated[str, CONFIG_KEY], int]
    """What its class fills in."""


@fact
class TowerRow(Row):
    """What a tower that reads images builds, and what its part of a config.json leaves out."""

    KIND: ClassVar = "tower"

    model_type: Text
    """The tower's."""
    config: Mapping[Annotated[str, CONFIG_KEY], Any]
    """What its class fills in."""
    norm: Literal["layer", "rms"] = "layer"
    """Its norms."""
    gated: bool = False
    """True for three matrices a feed-forward block, whatever the activation."""
    bias: bool = True
    """Whether its linears have one."""
    activation: str = "gelu_tanh"
    """Where the config tells none that is known."""
    fused: bool = False
    """True where queries, keys and values are one matrix."""
    rope: Literal["", "plain", "wide"] = ""
    """Rotary positions, wide where they turn in fp32; such a tower takes images of any size."""
    masked: bool = False
    """True where images stand one after the other, held apart by a mask."""
    leading: int = 0
    """Tokens before the patches."""
    scaled: bool = False
    """True where what a block adds is scaled, element by element."""
    normed: bool = False
    """True for a norm after the last block."""
    widens: bool = False
    """True where a norm before the first block leaves the stream in fp32."""
    hooked: bool = True
    """True where `enable_input_require_grads` finds its patches' embedding."""


@fact
class SeeingModelRow(Row):
    """What a model with a tower takes where it does not say, and what leads from tower to decoder."""

    KIND: ClassVar = "seeing_model"

    model_type: Text
    """The whole's."""
    projector: Literal["", "one", "two", "merged", "gated"] = ""
    """One matrix, two, a merger before the two, or a gated pair; none where the tower's own merger is all."""
    tower: str = ""
    """The type of its tower; none where only the projector is known."""
    text: str = ""
    """The type of its text part."""
    ending: Literal["", "merger", "pooled", "one", "two", "shuffled", "shuffled-two", "merged-two"] = ""
    """What follows the tower's blocks."""
    config: Mapping[Annotated[str, CONFIG_KEY], Any] = field(default_factory=dict)
    """What the whole's class fills in."""
    merge: int = 2
    """Patches a side that become one token, where neither part tells."""
    both_ways: bool = False
    """True where the decoder sees an image's tokens in both directions, by a mask."""
    listed: bool = False
    """True where the results of all layers are asked for."""
    flat: bool = False
    """True where files list the text part's sizes among the whole's."""
    uncapped: bool = False
    """True where its own head leaves out the cap that the text part's would put on logits."""


@fact
class SpeedRow(Row):
    """Published figures of the cards of a compute capability."""

    KIND: ClassVar = "speed"

    compute_capability: Capability | None = None
    """Whose; none: a card that is not known."""
    tflops: float
    """10¹² operations a second in 16 bits, without sparsity."""
    bandwidth: float
    """10⁹ bytes a second of the card's memory."""
    link: float
    """10⁹ bytes a second to another card of the host."""


@fact
class StaticShareRow(Row):
    """What SGLang takes of a card for weights and keys where nobody says it: the first row that holds.

    Either one of `shares`, or what is left beside a sum of MiB, as a share of the card.
    """

    KIND: ClassVar = "static_share"

    sglang: Annotated[str, forms.BOUND]
    """In which releases; one that is not known counts as the newest."""
    from_mib: int = 0
    """On cards of that much memory, as nvidia-smi tells it, and more."""
    below_mib: int | None = None
    """On cards of less."""
    shares: tuple[float, ...] = ()
    """For 1, 2, 4, 8 and 16 cards that share the model."""
    reserved_mib: float = 0.0
    """What is left out at least."""
    card_mib: float = 0.0
    """More for each card that shares the model."""
    token_mib: float = 0.0
    """More for each token of a chunk of a prompt."""
    graph_mib: float = 0.0
    """More for each request of the largest CUDA graph."""
    piece_mib: float = 0.0
    """More for each size of a prompt's piecewise graphs."""
    latent_mib: float = 0.0
    """More in their place where keys are latent."""
    least_mib: float = 0.0
    """The sum is no less."""
    chunk: int
    """Tokens of a chunk of a prompt, where nobody says it."""
    graphs: int
    """Requests of the largest graph, where nobody says it."""
    graphs_of_four: int | None = None
    """The same from four cards on, where it is another."""

    def problem(self) -> str | None:
        """A share for each usual number of cards, or a sum."""
        if self.shares:
            return None if len(self.shares) == 5 and not self.reserved_mib else "five shares, and no sum"
        return None if self.reserved_mib else "neither shares nor a sum"
