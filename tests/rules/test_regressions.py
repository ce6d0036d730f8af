"""What single releases broke is known by its line: the row that answers it, and what is typed first."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

REPORTS = {
    "NameError: name 'Replicate' is not defined": "TF-REPLICATE-UNDEFINED",
    "    s_aux=s_aux.to(query.dtype),\nAttributeError: 'NoneType' object has no attribute 'to'": (
        "TF-FA-SINKS-NONE"
    ),
    "AttributeError: 'list' object has no attribute 'get_usable_length'": "TF-CACHE-IS-TUPLE",
    "AttributeError: 'DeepSpeedZeroOptimizer_Stage3' object has no attribute 'train'": "DS-OPTIMIZER-TRAIN",
    "    cos, sin = position_embeddings\nTypeError: cannot unpack non-iterable NoneType object": (
        "OMNIGEN-POSITION-EMBEDDINGS"
    ),
    '    if rope_scaling["type"] != "su":\nKeyError: \'type\'': "VLLM-ROPE-TYPE-KEY",
    "    self.x + list(special_tokens.keys())\nAttributeError: 'list' object has no attribute 'keys'": (
        "TF4-EXTRA-TOKENS-LIST"
    ),
    "in _get_tied_weight_keys\nAttributeError: 'list' object has no attribute 'keys'": "TF5-TIED-KEYS-LIST",
    "AttributeError: 'list' object has no attribute 'keys'": "TF5-LIST-KEYS-UNTOLD",
    "    ROPE_INIT_FUNCTIONS[self.rope_type]\nKeyError: 'default'": "TF5-ROPE-DEFAULT",
    "KeyError: 'shape'": "TF5-CHAT-TEMPLATE-DICT",
    "KeyError: \"Unknown task text2text-generation, available tasks are ['ner']\"": "TF5-PIPELINE-TASK",
    "transformers env\nNameError: name 'TypeAdapter' is not defined": "TF5-CLI-TYPEADAPTER",
    "AttributeError: 'str' object has no attribute '__module__'": "TF513-STR-MODULE",
    "KeyError: 'full_attention'": "TF513-LAYER-TYPES",
    "AttributeError: property 'layer_types' of 'Plamo3Config' object has no setter": (
        "TF513-LAYER-TYPES-SETTER"
    ),
    "TypeError: Parameter.make_metavar() missing 1 required positional argument: 'ctx'": "CLICK-MAKE-METAVAR",
    "TypeError: Pickler._batch_setitems() takes 2 positional arguments but 3 were given": (
        "DILL-BATCH-SETITEMS"
    ),
    "    if \"const\" in schema:\nTypeError: argument of type 'bool' is not iterable": "GRADIO-SCHEMA-BOOL",
    "1 validation error for PredictBody\nevent_id\n  Field required": "GRADIO3-PREDICTBODY",
    "ImportError: TorchCodec is required for load_with_torchcodec.": "TORCHAUDIO-TORCHCODEC",
    "ImportError: cannot import name 'AttrsDescriptor' from 'triton.compiler.compiler'": (
        "TRITON-ATTRS-DESCRIPTOR"
    ),
    "NameError: name 'VARIANT_KWARG_KEYS' is not defined": "UNSLOTH-VARIANT-KWARGS",
    "NameError: name 'PeftModelForCausalLM_fast_forward' is not defined": "UNSLOTH-FAST-FORWARD",
    "RuntimeError: Unsloth: Please file a bug report! Error patching SFTTrainer": "UNSLOTH-PATCH-SFT",
    "TypeError: _get_per_token_logps() takes 5 positional arguments but 6 were given": "UNSLOTH-GRPO-LOGPS",
    "AttributeError: 'Gemma3ModelOutputWithPast' object has no attribute 'loss'": "UNSLOTH-GEMMA3-LOSS",
    "ValueError: Invalid version format: <module 'trl' from '/x/trl/__init__.py'>": (
        "UNSLOTH-TRL-MODULE-VERSION"
    ),
    "AttributeError: 'MatmulLtState' object has no attribute 'memory_efficient_backward'": (
        "PEFT-MATMUL-STATE"
    ),
    "    model.peft_config.save_pretrained(path)\nAttributeError: 'dict' object has no attribute "
    "'save_pretrained'": "PEFT-CONFIG-DICT",
    "TRL CLI: error: argument command: invalid choice: 'vllm-serve' (choose from 'sft')": "TRL-VLLM-SERVE",
    "AttributeError: 'AutoModelForCausalLMWithValueHead' object has no attribute 'warnings_issued'": (
        "TRL-WARNINGS-ISSUED"
    ),
    "AttributeError: 'Transformer' object has no attribute 'model_forward_params'": "ST-FORWARD-PARAMS",
    "TypeError: LLMatcher.validate_grammar() got some positional-only arguments passed as keyword "
    "arguments: 'tokenizer'": "LLGUIDANCE-POSITIONAL",
    "transformers: 5.2.0\nAttributeError: 'Phi3Config' object has no attribute 'pad_token_id'": (
        "ATTRIBUTE-MISSING"
    ),
    "transformers: 5.2.0\nAttributeError: 'T5Config' object has no attribute 'num_beams'": (
        "ATTRIBUTE-MISSING"
    ),
    "ImportError: cannot import name 'flash_attn_unpadded_qkvpacked_func' from "
    "'flash_attn.flash_attn_interface'": "ATTRIBUTE-MISSING",
    "ImportError: Cannot import name `AdamW` from transformers": "INTERFACE-MISSING",
    "AttributeError: module diffusers has no attribute QwenImagePipeline": "INTERFACE-MISSING",
    "AttributeError: 'dict' object has no attribute 'model_type'": "TF-4572-MODEL-TYPE",
    "TypeError: x._patch_mistral_regex() got multiple values for keyword argument 'fix_mistral_regex'": (
        "TF5-MISTRAL-REGEX-TWICE"
    ),
    "    cache_k, cache_v = kv_cache\nValueError: too many values to unpack (expected 2)": (
        "GLM4-REMOTE-CODE-CACHE"
    ),
    "AttributeError: 'Config' object has no attribute 'get_text_config'": "CONFIG-NOT-PRETRAINED",
    "AttributeError: 'tuple' object has no attribute 'sigmoid'": "TF513-ROUTER-TUPLE",
    "AttributeError: 'AutoModelForCausalLMWithValueHead' object has no attribute 'base_model_prefix'": (
        "TRL-VALUE-HEAD-WRAPPER"
    ),
    "ValueError: You passed `packing=False` to the SFTTrainer/SFTConfig, but": "TRL-PACKING-NO-FIELD",
    "    processing_class(example[dataset_text_field])\nKeyError: 'text'": "TRL-SFT-TEXT-COLUMN",
    "ValueError: too many dimensions 'str'": "TRL-07-STR-TENSOR",
    "AttributeError: 'PromptEncoderConfig' object has no attribute 'modules_to_save'": "PEFT-PROMPT-MODULES",
    "AttributeError: 'NoneType' object has no attribute 'next_functions'": "DS-NEXT-FUNCTIONS",
    "ImportError: To support decoding audio data, please install 'torchcodec'.": "DATASETS-TORCHCODEC",
    "TypeError: 'AudioDecoder' object is not subscriptable": "DATASETS-AUDIO-DECODER",
    "ImportError: cannot import name 'build_regex_from_schema' from 'outlines.fsm.json_schema'": (
        "ATTRIBUTE-MISSING"
    ),
    "ModuleNotFoundError: No module named 'outlines.fsm'": "OUTLINES-FSM-GONE",
    "AttributeError: 'NoneType' object has no attribute 'absmax'": "UNSLOTH-ABSMAX",
    "transformers: 5.3.0\nAttributeError: 'XConfig' object has no attribute 'forced_bos_token_id'": (
        "ATTRIBUTE-MISSING"
    ),
    "torch: 2.1.0a0+b5021ba\nValueError: FSDP requires PyTorch >= 2.1.0": "REQUIREMENT-REFUSED",
    "ImportError: Requires Flash-Attention version >=2.7.1,<=2.7.4 but got 2.8.0.post2.": (
        "REQUIREMENT-REFUSED"
    ),
}
OTHER_RELEASES = {
    "transformers: 4.53.0\nNameError: name 'Replicate' is not defined": "TF-REPLICATE-UNDEFINED",
    "transformers: 5.8.0\n    s_aux=s_aux.to(query.dtype)\nTypeError: x": "TF-FA-SINKS-NONE",
    "transformers: 4.57.0\nKeyError: 'shape'": "TF5-CHAT-TEMPLATE-DICT",
    "transformers: 5.13.1\nAttributeError: 'str' object has no attribute '__module__'": "TF513-STR-MODULE",
    "transformers: 4.57.0\nAttributeError: 'MyConfig' object has no attribute 'num_beams'": (
        "ATTRIBUTE-MISSING"
    ),
}


def found(text: str) -> dict[str, Finding]:
    matrix = load_matrix()
    facts = parse_paste(text, "", matrix.lexicon, "issue.md")
    return {finding.id: finding for finding in diagnose_facts(facts, matrix).findings}


@pytest.mark.parametrize(("text", "answer"), REPORTS.items(), ids=lambda one: one[:40])
def test_the_line_is_known(text: str, answer: str) -> None:
    assert answer in list(found(text))[:2]


@pytest.mark.parametrize(("text", "answer"), OTHER_RELEASES.items(), ids=lambda one: one[:40])
def test_of_another_release_it_is_not_said(text: str, answer: str) -> None:
    assert answer not in found(text)


@pytest.mark.parametrize(
    "text",
    [text for text in REPORTS if not text.startswith(("transformers:", "torch:")) and "but got" not in text],
    ids=lambda one: one[:40],
)
def test_words_alone_are_never_certain(text: str) -> None:
    assert all(finding.certainty is not Certainty.CERTAIN for finding in found(text).values())


REMOVED = (
    "NotImplementedError: Support for `training_epoch_end` has been removed in v2.0.0. You can use `on_x`."
)
COLAB = (
    "[/usr/local/lib/python3.10/dist-packages/pytorch_lightning/x.py](https://localhost:8080/#) in check(a)"
)


def test_a_message_that_names_the_release_tells_the_way_back() -> None:
    head = "NotImplementedError                       Traceback (most recent call last)\n"
    finding = found(f"{head}{COLAB}\n     81         raise NotImplementedError(\n\n{REMOVED}\n")["REMOVED-IN"]
    assert finding.remedies[0].pins == {"pytorch-lightning": "==1.9.5"}
    assert any("on_x" in remedy.text for remedy in finding.remedies)


@pytest.mark.parametrize(
    "text",
    [
        REMOVED,
        "NotImplementedError: it was removed in numpy 99.0",
        "numpy: 1.26.4\nAttributeError: `np.x` was removed in the NumPy 2.0 release",
        "The flag was removed in numpy 2.0",
    ],
)
def test_without_a_package_or_of_another_release_it_tells_nothing(text: str) -> None:
    assert "REMOVED-IN" not in found(text)


@pytest.mark.parametrize(
    ("code", "file", "told"),
    [
        ("return extract_model_from_parallel(model)", "accelerate/accelerator.py", "_orig_mod"),
        ("class _ArrayXDExt", "datasets/features/features.py", "PyExtensionType"),
    ],
)
def test_a_cut_traceback_is_asked_what_its_last_line_calls(code: str, file: str, told: str) -> None:
    function = "<module>" if code.startswith("class") else "work"
    frame = f'  File "/opt/lib/python3.11/site-packages/{file}", line 9, in {function}\n    {code}\n'
    assert told in found(f"Traceback (most recent call last):\n{frame}")["CUT-OFF"].summary


def test_a_variables_name_is_no_wrong_number() -> None:
    assert "LINT-VLLM-LORA-RANK" not in found("vllm serve m --enable-lora --max-lora-rank LORA_RANK\n")
    assert "LINT-VLLM-LORA-RANK" in found("vllm serve m --enable-lora --max-lora-rank 7\n")
