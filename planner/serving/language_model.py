"""What a language model asks of a GPU: its weights, its cache of keys and values, its work a token.

`models.csv` holds facts of public config.json files; each row names its file. A model that is not
in it is read from its own config.json.
"""

import csv
import difflib
import json
import math
import re
import tomllib
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

from msgspec import Struct, structs

from pricing.errors import InputError
from pricing.message import Message

_TABLE = Path(__file__).with_name("models.csv")
_BYTES_16BIT = 2.0
_PRECISIONS = tomllib.loads(Path(__file__).with_name("precisions.toml").read_text("utf-8"))
WEIGHT_BYTES: Mapping[str, float] = _PRECISIONS["weight_bytes"]
"""Bytes of a weight by precision; scales of quantized blocks (2-6 %) are left out."""
_LIKE = re.compile(r"^meta-|-(instruct|chat|it|base|hf|bf16)\b|-v0[\d.]*$|-\d{4}$")
_QUANTIZED = re.compile(r"-(fp8|nvfp4|mxfp4|int8|w8a8|int4|w4a16|awq|gptq)\b.*$", re.IGNORECASE)
_KINDS: Mapping[str, str] = _PRECISIONS["kinds"]
_NO_GENERATOR = re.compile(r"\b(bge|e5|gte|clip|flux|sdxl|whisper\w*|embed\w*|rerank\w*)\b")
_DOWN_AND_UP = 3  # matrices of a gated feed-forward block


class LanguageModel(Struct, frozen=True, kw_only=True):
    """The shape of a decoder.

    Attributes:
        name: as Hugging Face names it.
        parameters: of all weights.
        active_parameters: that one token touches; fewer than `parameters` in a mixture of experts.
        layers: decoder blocks.
        hidden: width of a token between them.
        attention_width: query heads times the width of a head, in the layers that attend.
        attention_layers: blocks that keep keys and values of all tokens.
        kv_heads: heads of keys and values; tensor parallel beyond them keeps copies.
        kv_bytes: of one token's keys and values over all layers, at 16 bit.
        experts: of each block; 1 without a mixture.
        experts_per_token: that one token takes.
        context: most tokens of a request; None where not stated.
        native_precision: of the published weights.
        checkpoint_bytes: of the published weights, with scales and parts of more bits; None where
            they were not looked up.
        weak: whether the shape is doubtful.
    """

    name: str
    parameters: float
    active_parameters: float
    layers: int
    hidden: int
    attention_width: int
    attention_layers: int
    kv_heads: int
    kv_bytes: float
    experts: int = 1
    experts_per_token: int = 1
    context: int | None = None
    native_precision: str = "bf16"
    checkpoint_bytes: float | None = None
    weak: bool = False

    @property
    def is_mixture(self) -> bool:
        """Whether a token touches a part of the weights only."""
        return self.experts > self.experts_per_token

    def weight_bytes(self, precision: str) -> float:
        """Return the bytes of all weights: the published ones as they were counted."""
        published = self.checkpoint_bytes if precision == self.native_precision else None
        return published or self.parameters * WEIGHT_BYTES[precision]

    def parameters_touched(self, tokens: float) -> float:
        """Return the weights that a step over so many tokens reads; each expert with chance k/E."""
        if self.experts <= self.experts_per_token:  # no mixture: asked at every step
            return self.parameters
        idle: float = (1.0 - self.experts_per_token / self.experts) ** max(tokens, 1.0)
        of_expert = (self.parameters - self.active_parameters) / (
            self.experts - self.experts_per_token
        )
        return self.parameters - idle * self.experts * of_expert


@cache
def models() -> Mapping[str, LanguageModel]:
    """Return the models of the table whose cache of keys and values is known, by name."""
    with _TABLE.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {row["model"]: _of_row(row) for row in rows if row["kv_bytes_per_token_16bit"]}


def _of_row(row: Mapping[str, str]) -> LanguageModel:
    heads, width = int(row["attention_heads"]), int(row["head_dim"] or 0)
    return LanguageModel(
        name=row["model"],
        parameters=1e9 * float(row["params_b"]),
        active_parameters=1e9 * float(row["active_params_b"]),
        layers=int(row["layers"]),
        hidden=int(row["hidden"]),
        attention_width=heads * width or int(row["hidden"]),
        attention_layers=int(row["kv_layers"] or row["layers"]),
        kv_heads=int(row["kv_heads"] or heads),
        kv_bytes=float(row["kv_bytes_per_token_16bit"]),
        experts=int(row["experts"] or 1),
        experts_per_token=int(row["experts_per_token"] or 1),
        context=int(row["context"]) if row["context"] else None,
        native_precision=_quantized(row["model"])
        or {"fp8": "fp8", "modelopt": "fp4", "mxfp4": "fp4"}.get(row["weights"].lower(), "bf16"),
        checkpoint_bytes=1e9 * float(row["checkpoint_gb"] or 0.0) or None,
        weak=row["confidence"] != "high",
    )


def _own(name: str) -> str:
    return name.rpartition("/")[2].lower()


def _plain(name: str) -> str:
    return _LIKE.sub("", _LIKE.sub("", _own(name)))


def _quantized(name: str) -> str | None:
    """Return the precision that a name ends with, such as fp8 of `-FP8-dynamic`; None of none."""
    ending = _QUANTIZED.search(name)
    return None if ending is None else _KINDS.get(ending[1].lower(), ending[1].lower())


def model_named(name: str) -> LanguageModel:
    """Return a model by its name, with or without its owner, or by its config.json or its folder.

    Tuned variants (-Instruct, -Chat) have the shape of their base, quantized ones (-FP8, -AWQ) too;
    a name without such an ending never means one.

    Raises:
        InputError: the table has no such model or several, or the file is not the config.json of a
            decoder.
    """
    if name.endswith(".json"):
        return model_of_config(_read(Path(name)), name)
    if (inside := Path(name, "config.json")).is_file():
        return model_of_config(_read(inside), name)
    table = models()
    matches = [model for model in table.values() if _own(model.name) == _own(name)]
    matches = matches or [model for model in table.values() if _plain(model.name) == _plain(name)]
    longer = [m for m in table.values() if _own(m.name).startswith(f"{_plain(name)}-")]
    matches = matches or [model for model in longer if not _quantized(model.name)]
    if name in table or len(matches) == 1:
        return table.get(name) or matches[0]
    quantized = _quantized(name)
    if quantized and not matches:
        base = model_named(_QUANTIZED.sub("", name))
        return structs.replace(base, name=name, native_precision=quantized, checkpoint_bytes=None)
    if _NO_GENERATOR.search(_own(name)):
        raise InputError(Message("serving.no-generator", model=name))
    near = [full for full in table if _QUANTIZED.sub("", _plain(full)) == _plain(name)]
    short = {_plain(full_name): full_name for full_name in table}
    near = near or [short[key] for key in difflib.get_close_matches(_plain(name), short, 3, 0.5)]
    hint = f" Near: {', '.join(near)}." if near else ""
    raise InputError(Message("serving.unknown-model", name=repr(name), hint=hint))


def _read(path: Path) -> Mapping[str, object]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a model's config.json: {error}.") from error
    if not isinstance(document, dict):
        raise InputError(f"{path}: is not a config.json of a model: it does not hold an object.")
    text_part = document.get("text_config")
    return text_part if isinstance(text_part, dict) else document


def _size(
    config: Mapping[str, object], name: str, *keys: str, default: float | None = None
) -> float:
    values = (config.get(key) for key in keys)
    value = next((v for v in values if isinstance(v, int | float) and v > 0), default)
    if value is None:
        raise InputError(f"{name}: {keys[0]} is missing; a decoder's config.json has it.")
    return float(value)


def model_of_config(config: Mapping[str, object], name: str) -> LanguageModel:
    """Return a decoder's shape from its config.json; parameters are computed from it.

    Raises:
        InputError: a size that the computation needs is missing.
    """
    size = partial(_size, config, name)
    layers, hidden = size("num_hidden_layers", "n_layer"), size("hidden_size", "n_embd")
    heads = size("num_attention_heads", "n_head")
    kv_heads = size("num_key_value_heads", default=heads)
    width = size("head_dim", default=hidden / heads)
    experts = size("num_local_experts", "num_experts", "n_routed_experts", default=1.0)
    active_experts = size("num_experts_per_tok", default=1.0)
    inner = size("intermediate_size", "n_inner", default=4.0 * hidden)
    inner = size("moe_intermediate_size", default=inner) if experts > 1 else inner
    kinds = config.get("layer_types")
    attending = layers
    if isinstance(kinds, list) and "full_attention" in kinds:
        attending = float(kinds.count("full_attention"))
    tied = bool(config.get("tie_word_embeddings"))
    latent = size("kv_lora_rank", default=0.5) >= 1.0
    kv_values = (
        size("kv_lora_rank") + size("qk_rope_head_dim", default=64.0)
        if latent
        else 2.0 * kv_heads * width
    )
    outside = size("vocab_size") * hidden * (1.0 if tied else 2.0)
    attention = hidden * width * (2.0 * heads + 2.0 * kv_heads)
    expert = _DOWN_AND_UP * hidden * inner
    return LanguageModel(
        name=name,
        parameters=outside + layers * (attention + experts * expert),
        active_parameters=outside + layers * (attention + active_experts * expert),
        layers=round(layers),
        hidden=round(hidden),
        attention_width=round(heads * width),
        attention_layers=round(attending),
        kv_heads=1 if latent else round(kv_heads),
        kv_bytes=attending * kv_values * _BYTES_16BIT,
        experts=round(experts),
        experts_per_token=round(active_experts),
        context=round(size("max_position_embeddings", default=0.5)) or None,
        weak=latent or experts > 1,
    )


def model_like(
    parameters: float,
    *,
    layers: int | None = None,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    name: str = "",
) -> LanguageModel:
    """Return a dense model by its size; what is not stated is that of the nearest dense model."""
    dense = (model for model in models().values() if not model.is_mixture and not model.weak)
    near = min(dense, key=lambda model: abs(math.log(model.parameters / parameters)))
    depth, heads = layers or near.layers, kv_heads or near.kv_heads
    stated = None not in (layers, kv_heads, head_dim)
    kv_width = (
        2.0 * heads * head_dim * _BYTES_16BIT
        if head_dim
        else near.kv_bytes / near.attention_layers * heads / near.kv_heads
    )
    return LanguageModel(
        name=name or f"{parameters / 1e9:.3g}B",
        parameters=parameters,
        active_parameters=parameters,
        layers=depth,
        hidden=near.hidden,
        attention_width=near.attention_width,
        attention_layers=depth,
        kv_heads=heads,
        kv_bytes=depth * kv_width,
        weak=not stated,
    )
