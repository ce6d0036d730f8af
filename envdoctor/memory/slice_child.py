"""Run in the examined interpreter: a slice of the real model, a few layers deep, traced or on the card.

Reads a job as JSON on standard input, writes `{"layers": {"1": {...}, "2": {...}}}` or `{"error": ...}`.
Traced, nothing is computed and no GPU is touched: fake tensors, sizes rounded as the CUDA caching allocator
rounds them. On the card, real steps with random weights. Heights are bytes above the weights and states.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import weakref
from collections.abc import Iterator
from typing import Any

ROUND = 512


def tracker(torch: Any) -> Any:
    """Return a dispatch mode that counts the bytes of live storages and their peak."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_iter

    class Tracker(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.live = 0
            self.peak = 0
            self.seen: Any = weakref.WeakSet()
            self.shares = 0  # experts that a loop goes through

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.ops.aten.nonzero.default:
                out = self.routed(args[0])
            elif func is torch.ops.aten._local_scalar_dense.default and self.shares:
                return 0  # any expert: they are alike
            else:
                out = func(*args, **(kwargs or {}))
            for one in tree_iter(out):
                if isinstance(one, torch.Tensor):
                    self.add(one)
            return out

        def routed(self, told: Any) -> Any:
            """Which experts are hit, and which tokens go to one: all, and as many as to any other."""
            if told.dim() == 1:
                self.shares = told.numel()
            rows = -(-told.numel() // (self.shares if told.dim() > 1 and self.shares else 1))
            return torch.zeros((rows, told.dim()), dtype=torch.int64, device=told.device)

        def add(self, tensor: Any) -> None:
            storage = tensor.untyped_storage()
            if storage in self.seen:
                return
            self.seen.add(storage)
            size = -(-storage.nbytes() // ROUND) * ROUND
            weakref.finalize(storage, self.free, size)
            self.live += size
            self.peak = max(self.peak, self.live)

        def free(self, size: int) -> None:
            self.live -= size

        def reset(self) -> int:
            """The weights were there before the mode: what is counted lies above them."""
            peak, self.peak = self.peak, self.live
            return peak

    return Tracker()


WIDENED = (
    "__pow__", "__rdiv__", "__rpow__", "acos", "asin", "binary_cross_entropy_with_logits", "cdist", "cosh",
    "cosine_embedding_loss", "cosine_similarity", "cumprod", "cumsum", "dist", "erfinv", "exp", "expm1",
    "group_norm", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "layer_norm", "log", "log10",
    "log1p", "log2", "log_softmax", "logsumexp", "mse_loss", "nll_loss", "norm", "normalize", "pow", "prod",
    "reciprocal", "renorm", "rsqrt", "sinh", "smooth_l1_loss", "softmax", "softmin", "softplus", "square",
    "tan",
)  # fmt: skip
"""What autocast computes in fp32 on CUDA, and not on a CPU; `square` is a `pow` within.
https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-can-autocast-to-float32"""


@contextlib.contextmanager
def widening(torch: Any) -> Iterator[None]:
    """Let those functions take what is narrow in fp32, in what a checkpoint recomputes as well."""
    narrow = (torch.bfloat16, torch.float16)

    def wide(one: Any) -> Any:
        return one.float() if isinstance(one, torch.Tensor) and one.dtype in narrow else one

    def widened(plain: Any) -> Any:
        return lambda *args, **named: plain(*map(wide, args), **{k: wide(v) for k, v in named.items()})

    homes = (torch, torch.Tensor, torch.nn.functional)
    plain = [(home, name, getattr(home, name)) for home in homes for name in WIDENED if hasattr(home, name)]
    for home, name, function in plain:
        setattr(home, name, widened(function))
    try:
        yield
    finally:
        for home, name, function in plain:
            setattr(home, name, function)


@contextlib.contextmanager
def cuda_ways(torch: Any, amp: str) -> Iterator[None]:
    """Do as CUDA does: its autocast computes more in fp32, flash attention needs no repeated keys, and what
    drops values keeps a byte for each (elsewhere torch keeps the noise that it multiplies by)."""
    functional = torch.nn.functional
    plain_attention, plain_dropout = functional.scaled_dot_product_attention, functional.dropout
    flash = flash_function(torch)

    def attention(q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
        if amp != "none":
            q, k, v = (t.to(getattr(torch, amp)) for t in (q, k, v))
        known = q.shape[-1] <= 256 and (kwargs.get("enable_gqa") or q.shape[1] == k.shape[1])
        if attn_mask is None and known and q.dtype != torch.float32:
            return flash.apply(q, k, v)
        return plain_attention(q, k, v, attn_mask, *args, **kwargs)

    def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if training and not inplace and 0 < p < 1:
            return torch.native_dropout(x, p, True)[0]
        return plain_dropout(x, p, training, inplace)

    functional.scaled_dot_product_attention, functional.dropout = attention, dropout
    try:
        with widening(torch) if amp != "none" else contextlib.nullcontext():
            yield
    finally:
        functional.scaled_dot_product_attention, functional.dropout = plain_attention, plain_dropout


def flash_function(torch: Any) -> Any:
    """Return an operation that allocates and saves what the flash kernel does."""

    class Flash(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, q: Any, k: Any, v: Any) -> Any:
            out = q.new_empty((*q.shape[:-1], v.shape[-1]))  # values may be narrower
            ctx.save_for_backward(q, k, v, out, torch.empty(q.shape[:3], dtype=torch.float32))
            return out

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            q, k, v, _, _ = ctx.saved_tensors
            scratch = torch.empty(q.shape, dtype=torch.float32)
            gradients = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
            del scratch
            return gradients

    return Flash


DEPTHS = (
    "num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_encoder_layers", "num_decoder_layers",
    "encoder_layers", "decoder_layers",
)  # fmt: skip

LAYER_BY_LAYER = ("layer_types", "layers_block_type", "hybrid_override_pattern")


def configure(job: dict[str, Any], layers: int) -> Any:
    """Return the configuration of a model of that many layers, of its text part or in each of its stacks."""
    from transformers import AutoConfig

    settings = unmarked(job["config"])
    kind = settings.pop("model_type")
    parts = [key for key in ("text_config", "encoder", "decoder") if isinstance(settings.get(key), dict)]
    if parts and "hidden_size" not in settings:
        settings |= {key: shallow(settings[key], layers) for key in parts}
    else:
        settings = shallow(settings, layers)
    config = AutoConfig.for_model(kind, **settings)
    config.get_text_config().use_cache = False
    config.use_cache = False
    if job["attn"] != "sdpa":  # transformers' own choice, but where the class has none
        config._attn_implementation = job["attn"]
    return config


def unmarked(told: Any) -> Any:
    """Return settings with numbers that JSON has no word for, which transformers 5 writes as `__float__`."""
    if isinstance(told, dict):
        alone = told.get("__float__") if len(told) == 1 else None
        return {key: unmarked(one) for key, one in told.items()} if alone is None else float(alone)
    return [unmarked(one) for one in told] if isinstance(told, list) else told


def shallow(settings: dict[str, Any], layers: int) -> dict[str, Any]:
    """Return the settings of a model of that many layers, what is told layer by layer cut to as many.

    That is a list or a pattern as long as the model is deep, or a table by the places of layers.
    """
    told = [key for key in DEPTHS if isinstance(settings.get(key), int)]
    listed = next((settings[key] for key in LAYER_BY_LAYER if settings.get(key)), ())
    deep = max((settings[key] for key in told), default=len(listed))
    cut: dict[str, Any] = {
        key: value[:layers]
        for key, value in settings.items()
        if isinstance(value, (list, str)) and len(value) == deep > 3
        if isinstance(value, list) or key in LAYER_BY_LAYER
    }
    for key, value in settings.items():
        if isinstance(value, dict) and value and all(str(place).isdigit() for place in value):
            cut[key] = {place: one for place, one in value.items() if int(place) < layers}
    counted = {key: min(layers, settings[key]) for key in told} or (
        {} if listed else {"num_hidden_layers": layers}
    )
    return {**settings, **cut, **counted}


def class_of(config: Any) -> Any:
    """Return the automatic class that trains this configuration on tokens; raises ValueError without one.

    A model that sees is loaded with its towers.
    """
    import transformers

    names = ["CausalLM", "ImageTextToText", "Seq2SeqLM", "MaskedLM"]
    if getattr(config, "is_encoder_decoder", False):  # whose decoder alone is a class as well
        names.insert(0, names.pop(2))
    elif hasattr(config, "vision_config"):
        names.insert(0, names.pop(1))
    for name in names:
        found = getattr(transformers, "AutoModelFor" + name, None)
        if found is not None and type(config) in found._model_mapping:
            return found
    raise ValueError(f"{config.model_type}: no class of transformers trains it on tokens alone")


def build(torch: Any, job: dict[str, Any], layers: int, device: str) -> Any:
    """Return the model of that many layers, adapters on it and linears quantised where wanted."""
    config, dtype = configure(job, layers), getattr(torch, job["dtype"])
    with torch.device("meta" if job["quant"] else device):
        model = class_of(config).from_config(config, dtype=dtype)
    if job["quant"]:
        quantise(torch, model, job, dtype)
        model.get_decoder().rotary_emb = type(model.get_decoder().rotary_emb)(config).to(device)
        model.tie_weights()
    if job["liger"]:
        from liger_kernel.transformers import _apply_liger_kernel_to_instance

        _apply_liger_kernel_to_instance(model=model)
    if job["rank"]:
        model = adapt(torch, model, job, device)
    if job["checkpoint"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": job["reentrant"]})
    return model.train()


def adapt(torch: Any, model: Any, job: dict[str, Any], device: str) -> Any:
    """Put LoRA adapters on a model."""
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    if job["quant"] and job["upcast"]:
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=job["checkpoint"])
    targets = "all-linear" if job["targets"] == "all" else job["targets"]
    lora = LoraConfig(
        r=job["rank"], lora_dropout=job["dropout"], target_modules=targets, task_type="CAUSAL_LM",
        use_dora=job["dora"], modules_to_save=job["copied"],
    )  # fmt: skip
    with torch.device(device):
        model = get_peft_model(model, lora, autocast_adapter_dtype=job["adapter_fp32"])
    if job["checkpoint"]:
        model.enable_input_require_grads()
    return model


def quantise(torch: Any, model: Any, job: dict[str, Any], dtype: Any) -> None:
    """Give every linear but the head a random quantised weight on the card, everything else a plain one."""
    import bitsandbytes as bnb

    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if not isinstance(child, torch.nn.Linear) or name in ("lm_head", "embed_out"):
                continue
            biased = child.bias is not None
            size = (child.out_features, child.in_features)
            weight = torch.randn(size, dtype=torch.float16, device="cuda").mul_(0.02).cpu()
            if job["quant"] == "int8":
                new = bnb.nn.Linear8bitLt(
                    child.in_features, child.out_features, bias=biased, has_fp16_weights=False
                )
                new.weight = bnb.nn.Int8Params(weight, requires_grad=False, has_fp16_weights=False)
            else:
                twice = job["double_quant"]
                new = bnb.nn.Linear4bit(
                    child.in_features, child.out_features, bias=biased, compute_dtype=dtype,
                    compress_statistics=twice, quant_type="nf4",
                )  # fmt: skip
                new.weight = bnb.nn.Params4bit(
                    weight.to(dtype),
                    requires_grad=False,
                    compress_statistics=twice,
                    quant_type="nf4",
                    module=new,
                )
            if biased:
                new.bias = torch.nn.Parameter(torch.zeros(child.out_features, dtype=dtype))
            setattr(parent, name, new.to("cuda"))
    for module in model.modules():
        for name, value in list(module._parameters.items()):
            if value is not None and value.is_meta:
                plain = torch.zeros(value.shape, dtype=dtype, device="cuda")
                module._parameters[name] = torch.nn.Parameter(plain, requires_grad=False)
    model.is_loaded_in_8bit = job["quant"] == "int8"
    model.is_loaded_in_4bit = job["quant"] == "nf4"


def make_fake(torch: Any, model: Any, mode: Any) -> None:
    """Put a fake CPU tensor in the place of every meta parameter and buffer, shared ones once."""
    made: dict[int, Any] = {}
    for module in model.modules():
        for name, value in list(module._parameters.items()):
            if value is not None:
                if id(value) not in made:
                    with mode:
                        fresh = torch.empty(value.shape, dtype=value.dtype, device="cpu")
                    made[id(value)] = torch.nn.Parameter(fresh, requires_grad=value.requires_grad)
                module._parameters[name] = made[id(value)]
        for name, value in list(module._buffers.items()):
            if value is not None:
                with mode:
                    module._buffers[name] = torch.empty(value.shape, dtype=value.dtype, device="cpu")


class Marks:
    """Where the backward pass leaves the head and where it leaves the first layer, told by hooks."""

    def __init__(self, model: Any, reset: Any, live: Any) -> None:
        self.model, self.reset, self.live = model, reset, live
        self.heights: dict[str, int] = {}
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.handles = [
            base.get_output_embeddings().register_forward_pre_hook(self._at_head),
            base.get_input_embeddings().register_forward_hook(self._at_input),
        ]

    def _at_head(self, module: Any, inputs: Any) -> None:
        if inputs[0].requires_grad:
            inputs[0].register_hook(lambda gradient: self._mark("loss"))

    def _at_input(self, module: Any, inputs: Any, output: Any) -> None:
        if output.requires_grad:
            output.register_hook(lambda gradient: self._mark("layers"))

    def _mark(self, name: str) -> None:
        self.heights["backward_" + name] = self.reset()
        self.heights["live_after_" + name] = self.live()

    def close(self) -> None:
        """Take the hooks off."""
        for handle in self.handles:
            handle.remove()


def step(torch: Any, model: Any, job: dict[str, Any], device: str, reset: Any, live: Any) -> dict[str, int]:
    """Run one forward and backward pass as the Trainer does; `reset` returns the peak since its last call."""
    tokens = torch.zeros((job["batch"], job["seq"]), dtype=torch.int64, device=device)
    mask = torch.ones_like(tokens) if device == "cuda" else None  # a fake mask's contents could not be told
    amp = job["amp"]
    marks = Marks(model, reset, live)
    reset()
    with contextlib.ExitStack() as stack:
        if amp != "none":
            stack.enter_context(torch.autocast(device, dtype=getattr(torch, amp)))
        output = model(input_ids=tokens, attention_mask=mask, labels=tokens)
        loss = output.loss
    if amp != "none" and output.logits is not None:
        full = output.logits.float()  # as accelerate hands the outputs back
        del full
    del output
    heights = {"forward": reset()}
    loss.backward()
    del loss
    marks.close()
    last = {"backward_end": reset(), "live_end": live()}
    return {**heights, **marks.heights, **last}


def expect_plain_rows() -> None:
    """Rows are not packed: transformers would look into the positions, which a fake tensor does not have."""
    from transformers import masking_utils

    if hasattr(masking_utils, "find_packed_sequence_indices"):
        masking_utils.find_packed_sequence_indices = lambda *args, **kwargs: None


def trace(torch: Any, job: dict[str, Any], layers: int) -> dict[str, int]:
    """Return the heights of a step under fake tensors."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    model = build(torch, job, layers, "meta")
    expect_plain_rows()
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    make_fake(torch, model, mode)
    heights: dict[str, int] = {}
    with mode, tracker(torch) as count, cuda_ways(torch, job["amp"]):
        lasting = [*model.parameters(), *model.buffers()]
        count.seen.update(tensor.untyped_storage() for tensor in lasting)
        for _ in range(2 if job["accumulating"] else 1):
            heights = step(torch, model, job, "cpu", count.reset, lambda: count.live)
    return {**heights, **inventory(model)}


def inventory(model: Any) -> dict[str, int]:
    """Bytes of all parameters, tied ones once, and how many elements are trained.

    What no token went through, a tower or experts of images, has neither gradients nor states; an expert of
    which there are like ones has them, whichever were hit here.
    """
    own = {id(p): p for p in model.parameters()}.values()
    kinds = {id(p): re.sub(r"\d+", "#", name) for name, p in model.named_parameters()}
    reached = {kinds[id(p)] for p in own if p.grad is not None}
    trained = [p for p in own if p.requires_grad and kinds[id(p)] in reached]
    return {
        "weights": sum(p.numel() * p.element_size() for p in own),
        "trained": sum(p.numel() for p in trained),
        "gradients": sum(p.numel() * p.element_size() for p in trained),
    }


def measure(torch: Any, job: dict[str, Any], layers: int) -> dict[str, int]:
    """Return the heights of the third of three real steps on the card, and what the allocator held."""
    cuda = torch.cuda
    model = build(torch, job, layers, "cuda")
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-6, fused=True)
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    heights: dict[str, int] = {}
    found: dict[str, int] = {}
    most = lasting = 0

    def reset() -> int:
        nonlocal most
        cuda.synchronize()
        peak = int(cuda.max_memory_allocated())
        most = max(most, peak)
        cuda.reset_peak_memory_stats()
        return peak

    for _ in range(3):
        lasting = int(cuda.memory_allocated())
        for _ in range(2 if job["accumulating"] else 1):
            heights = step(torch, model, job, "cuda", reset, lambda: int(cuda.memory_allocated()))
        found = inventory(model)
        optimizer.step()
        optimizer.zero_grad()
        reset()
    heights = {name: peak - lasting for name, peak in heights.items()}
    heights.update(found)
    free, total = cuda.mem_get_info()
    heights["reserved"], heights["allocated"] = int(cuda.max_memory_reserved()), most
    heights["outside"] = int(total - free - cuda.memory_reserved())
    del model, optimizer, trained
    cuda.empty_cache()
    return heights


def main() -> None:
    """Answer one job."""
    job = json.load(sys.stdin)
    try:
        import torch
        import transformers

        run = measure if job["mode"] == "measure" else trace
        answer: dict[str, Any] = {"layers": {str(n): run(torch, job, n) for n in job["layers"]}}
        answer["versions"] = {"torch": torch.__version__, "transformers": transformers.__version__}
    except Exception as error:  # whatever the examined libraries raise is the answer
        answer = {"error": f"{type(error).__name__}: {error}"[:500]}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
