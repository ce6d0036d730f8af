"""`python gathering/model_rows.py ROWS.toml FOLDER=SOURCE...`: rows of models from their config.json.

Each FOLDER holds files `ORGANISATION--NAME_config.json`, as the Hub has them; SOURCE says where they were
opened, with `{file}` and `{hub}` for a file's and a model's name. ROWS.toml is written anew: a row for each
model that no earlier folder and no row of `models.toml` has. Of a family that is known only what decides
the shape is kept, of one that is traced the whole config but what no model is built of.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError
from envdoctor.files import replace_file
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory.catalogue import catalogue_name
from envdoctor.memory.families import ACTIVE, ALIASES, COUNTS, EXPERTS, LAYER_BY_LAYER, SHARES, TRAITS
from envdoctor.memory.model_config import parse_shape, read_config

_HEAD = """\
# Written by `python gathering/model_rows.py`: shapes of further models, from their config.json.

[defaults]
checked_on = "{date}"
basis = "upstream source"
"""
_OTHERS = """
    model_type text_config vision_config audio_config vit_config vision_tower_config rope_parameters
    patch_size image_size downsample_ratio scale_factor downsample_factor alignment_intermediate_size
    head_dim tie_word_embeddings multi_query new_decoder_architecture parallel_attn
    use_parallel_residual alibi attention_bias add_qkv_bias use_qkv_bias mlp_bias bias hidden_act
    hidden_activation activation_function activation sliding_window sliding_window_pattern
    use_sliding_window final_logit_softcapping mlp_layer_types moe_intermediate_size
    deepstack_visual_indexes quantization_config quant_method bits quant_algo format load_in_4bit load_in_8bit
"""
_SHAPING = frozenset(
    (
        *_OTHERS.split(), *(key for keys in ALIASES.values() for key in keys),
        *EXPERTS, *ACTIVE, *COUNTS, *SHARES, *LAYER_BY_LAYER,
    )
)  # fmt: skip
"""All keys of a config.json that a shape is made of."""
_IDLE = re.compile(
    r"_?(architectures|auto_map|name_or_path|commit_hash|diffusers_version|torch_dtype|dtype|use_cache"
    r"|initializer_range|initializer_factor|transformers_version|chunk_size_feed_forward|output_\w+|return_dict"
    r"|id2label|label2id|problem_type|is_encoder_decoder|\w*_?token_(id|index|ids)"
    r"|sequence_length|router_aux_loss_coef|pretraining_tp|unsloth_\w+|rms_norm_eps|layer_norm_eps\w*)"
)
"""Keys that neither a model nor a prediction is made of."""
_ENDLESS = re.compile(r"Infinity|e\+?\d{2}|(?<![\d.])\d{16}")


def kept(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a config that a row holds, nested parts alike, without null and endless values."""
    text = config.get("text_config")
    inner = text.get("model_type") if isinstance(text, Mapping) else config.get("model_type")
    return dict(_pruned(config, inner in TRAITS))


def _pruned(config: Mapping[str, Any], known: bool) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if (
            value is None
            or _ENDLESS.search(json.dumps(value))
            or (key not in _SHAPING if known else _IDLE.fullmatch(key))
        ):
            continue
        quantised = key == "quantization_config"
        left = _without_nulls(value, quantised or (known and key != "rope_parameters"))
        if left not in ({}, []):
            yield key, left


def _without_nulls(value: Any, known: bool) -> Any:
    if isinstance(value, Mapping):
        return dict(_pruned(value, known))
    return [_without_nulls(v, known) for v in value if v is not None] if isinstance(value, list) else value


def read_folder(folder: Path, source: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the Hub's id, the source and the kept config of each file; raises InputError for one unread."""
    for path in sorted(folder.glob("*_config.json")):
        organisation, told, name = path.name.removesuffix("_config.json").partition("--")
        if not told:
            raise InputError(f"{path}: not called ORGANISATION--NAME_config.json")
        hub = f"{organisation}/{name}"
        yield hub, source.format(file=path.name, hub=hub), kept(read_config(path))


def as_toml(value: Any) -> str:
    """Return a plain value as TOML writes it on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {as_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else json.dumps(name)


def rows_of(folders: Mapping[Path, str], taken: set[str]) -> Iterator[str]:
    """Yield the row of each model that has no name of `taken`, which grows; raises InputError."""
    for folder, source in folders.items():
        for hub, page, config in read_folder(folder, source):
            name = catalogue_name(hub)
            if name in taken:
                continue
            parse_shape(config, hub)
            taken.add(name)
            told = {"id": "MODEL-" + re.sub(r"[^A-Z0-9.+-]", "-", name.upper()), "name": name, "hub": hub}
            fields = {**told, "config": config, "source": page}
            yield "\n[[model]]\n" + "".join(f"{key} = {as_toml(value)}\n" for key, value in fields.items())


def main(arguments: list[str]) -> int:
    """Write the rows; 2 for a call or a file that is none."""
    try:
        target, folders = Path(arguments[0]), dict(part.split("=", 1) for part in arguments[1:])
    except (IndexError, ValueError):
        sys.stderr.write("usage: model_rows ROWS.toml FOLDER=SOURCE...\n")
        return 2
    matrix = load_matrix()
    written = {row.name for row in matrix.rows(tables.ModelRow) if row.hub}
    taken = {row.name for row in matrix.rows(tables.ModelRow)} - written
    try:
        rows = list(rows_of({Path(folder): source for folder, source in folders.items()}, taken))
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    replace_file(target, _HEAD.format(date=matrix.date) + "".join(rows))
    sys.stderr.write(f"{target}: {len(rows)} models\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
