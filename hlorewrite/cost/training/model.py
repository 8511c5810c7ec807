"""Shapes of models: parameters, FLOPs and activations of one layer, and presets by name.

Symbols: l layers, h hidden, a heads, s sequence, V vocabulary, f feed-forward width. A GPT layer has 12 h^2 weights
when f = 4h: P = 12 l h^2 (1 + 13/(12h) + (V+s)/(12 l h)) (Narayanan et al., SC 2021, equation 2).
"""

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hlorewrite.errors import UsageError, did_you_mean

FAMILIES = ("gpt", "llama", "moe", "vit", "mamba")
_OF_EXPERTS = ("top_k", "shared_experts", "dense_layers", "dense_feed_forward")
_MAY_BE_ZERO = ("head_dim", "query_rank", "kv_rank", "rope_dim", "dense_layers", "dense_feed_forward",
                "shared_experts", "window")
MOST = 10**12
"""Upper bound of a model's sizes: far above any model, and far below the range of floats."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The numbers of a model that traffic, time and memory follow from.

    Args:
      name: its name.
      family: ``gpt``, ``llama``, ``moe``, ``vit`` or ``mamba``.
      layers: number of blocks.
      hidden: model width.
      heads: attention heads.
      seq: tokens of a sequence (patches of an image).
      vocab: rows of the embedding; classes of a ViT.
      feed_forward: width of the feed-forward part.
      kv_heads: heads of keys and values.
      gated: whether the feed-forward has a gate (three matrices instead of two).
      experts: experts of a layer; 1 is a dense model.
      top_k: experts a token goes to.
      tied_embedding: whether input and output share one embedding.
      parameters_given: N as the user states it, in place of the count from the shape.
      head_dim: width of one head; 0 is hidden / heads. With latent attention, the part without position.
      query_rank: rank of the queries' projection in latent attention (MLA); 0 projects in one step.
      kv_rank: rank that keys and values share in latent attention (MLA); 0 is attention without it.
      rope_dim: width of a head's rotary part in latent attention.
      dense_layers: layers at the start whose feed-forward has no experts.
      dense_feed_forward: width of the feed-forward of those; 0 is ``feed_forward``.
      shared_experts: experts of a layer that each token goes to in addition to its ``top_k``.
      window: tokens that every second layer attends to; 0 is all.

    Example:
      >>> round(model("gpt3-175b").parameters / 1e9)
      175
    """

    name: str
    family: str
    layers: int
    hidden: int
    heads: int
    seq: int
    vocab: int
    feed_forward: int
    kv_heads: int
    gated: bool = False
    experts: int = 1
    top_k: int = 1
    tied_embedding: bool = True
    parameters_given: float | None = None
    head_dim: int = 0
    query_rank: int = 0
    kv_rank: int = 0
    rope_dim: int = 0
    dense_layers: int = 0
    dense_feed_forward: int = 0
    shared_experts: int = 0
    window: int = 0

    @property
    def attends(self) -> bool:
        """Whether the layers have attention."""
        return self.family != "mamba"

    @property
    def attention_weights(self) -> float:
        """Matrix weights of a layer's attention (of a Mamba block: of its projections)."""
        if not self.attends:
            return 6.0 * self.hidden**2  # in: h x 2(2h), out: 2h x h
        if self.kv_rank:
            inner = self.query_rank or self.hidden
            queries = self.hidden * self.query_rank + inner * self.heads * (self.head_width + self.rope_dim)
            pairs = self.hidden * (self.kv_rank + self.rope_dim) + 2 * self.kv_rank * self.heads * self.head_width
            return float(queries + pairs + self.heads * self.head_width * self.hidden)
        return 2.0 * self.hidden * self.head_width * (self.heads + self.kv_heads)

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.head_dim or self.hidden // self.heads

    @property
    def score_width(self) -> float:
        """Width over which a token's scores are summed, all heads: the mean of the widths of queries and of values."""
        return self.heads * (self.head_width + self.rope_dim / 2) if self.attends else 0.0

    @property
    def kv_width(self) -> float:
        """Elements of a token's keys and values, as context parallelism exchanges them."""
        if self.kv_rank:
            return self.heads * (2.0 * self.head_width + self.rope_dim)
        return 2.0 * self.kv_heads * self.head_width

    @property
    def attended(self) -> float:
        """Tokens a token attends to without a causal mask, averaged over all layers."""
        return (self.seq + min(self.window, self.seq)) / 2 if self.window else float(self.seq)

    @property
    def expert_layers(self) -> int:
        """Layers whose feed-forward has experts; 0 in a dense model."""
        return self.layers - self.dense_layers if self.experts > 1 else 0

    @property
    def dense_weights(self) -> float:
        """Matrix weights of a feed-forward without experts."""
        if not self.attends:
            return 0.0
        return (3.0 if self.gated else 2.0) * self.hidden * (self.dense_feed_forward or self.feed_forward)

    @property
    def expert_weights(self) -> float:
        """Matrix weights of one feed-forward (one expert)."""
        if not self.attends:
            return 0.0
        return (3.0 if self.gated else 2.0) * self.hidden * self.feed_forward

    @property
    def routed_weights(self) -> float:
        """Matrix weights of all routed experts of the model; 0 in a dense model."""
        return self.expert_layers * self.experts * self.expert_weights

    @property
    def matrix_weights(self) -> float:
        """Matrix weights of all layers, with all experts and routers."""
        plain = (self.layers - self.expert_layers) * self.dense_weights
        mixed = self.expert_layers * (self.shared_experts * self.expert_weights + self.hidden * self.experts)
        return self.layers * self.attention_weights + plain + mixed + self.routed_weights

    @property
    def layer_weights(self) -> float:
        """Matrix weights of a layer, with all experts and its router, averaged over all layers."""
        return self.matrix_weights / self.layers

    @property
    def active_weights(self) -> float:
        """Matrix weights of a layer that one token meets, averaged over all layers."""
        plain = (self.layers - self.expert_layers) * self.dense_weights
        mixed = self.expert_layers * (self.top_k + self.shared_experts) * self.expert_weights
        return self.attention_weights + (plain + mixed) / self.layers

    @property
    def embedding_parameters(self) -> float:
        """Parameters of the token embedding (once)."""
        return float(self.vocab) * self.hidden

    @property
    def split_small(self) -> float:
        """Biases of a layer that tensor parallelism splits: of queries, keys, values and the wide feed-forward."""
        if self.gated:
            return 0.0
        return 7.0 * self.hidden if self.attends else 12.0 * self.hidden

    @property
    def copied_small(self) -> float:
        """Norms and biases of a layer that each tensor rank holds whole."""
        if self.gated:
            return 2.0 * self.hidden
        return 6.0 * self.hidden if self.attends else 1.0 * self.hidden

    @property
    def position_parameters(self) -> float:
        """Learned positions, on the first stage."""
        return float(self.seq) * self.hidden if self.family in ("gpt", "vit") else 0.0

    @property
    def parameters(self) -> float:
        """N: all parameters."""
        if self.parameters_given is not None:
            return self.parameters_given
        small = self.split_small + self.copied_small  # 13 h in a GPT
        heads = self.embedding_parameters * (1 if self.tied_embedding else 2)
        return self.matrix_weights + self.layers * small + heads + self.position_parameters

    @property
    def all_reduces_per_layer(self) -> int:
        """All-reduces a tensor-parallel layer needs in the forward pass."""
        return 2 if self.attends else 1


@cache
def _presets() -> dict[str, dict[str, object]]:
    text = (Path(__file__).parent.parent / "data" / "models.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def model_names() -> list[str]:
    """Names of the known models, sorted.

    Example:
      >>> "llama-7b" in model_names()
      True
    """
    return sorted(_presets())


def model(name: str, **changes: object) -> ModelShape:
    """A known model, or one family with its numbers given.

    Args:
      name: a preset (:func:`model_names`) or a family (``gpt``, ``llama``, ``moe``, ``vit``, ``mamba``).
      **changes: fields of :class:`ModelShape` to set over the preset's.

    Returns:
      The model.

    Raises:
      UsageError: unknown name, or a number that is not possible.

    Example:
      >>> model("gpt", layers=2, hidden=64, heads=4, seq=32, vocab=100).feed_forward
      256
    """
    changes = {key: value for key, value in changes.items() if value is not None}
    if name in _presets():
        base = dict(_presets()[name])
        if "hidden" in changes and "feed_forward" not in changes:
            base.pop("feed_forward", None)
        if "heads" in changes:
            base.pop("kv_heads", None)
        if changes.keys() & {"heads", "hidden"} and "kv_rank" not in base:
            base.pop("head_dim", None)
        if changes.get("experts") == 1:
            base = {key: value for key, value in base.items() if key not in _OF_EXPERTS}
    elif name in FAMILIES:
        base = {"family": name}
    else:
        raise UsageError(f'there is no model "{name}"', hint=did_you_mean(name, [*model_names(), *FAMILIES]))
    fields = {**base, **changes}
    missing = [key for key in ("layers", "hidden", "heads", "seq", "vocab") if key not in fields]
    if missing:
        flags = ", ".join(f"--{key}" for key in missing)
        raise UsageError(f'"{name}" needs its numbers', hint=f"add {flags}")
    shape = _filled(name, fields)
    _check(shape)
    return shape


def _filled(name: str, fields: dict) -> ModelShape:
    """The fields with the family's defaults."""
    family = fields["family"]
    llama_like = family == "llama" or fields.get("gated", False)
    width = fields["hidden"]
    fields.setdefault("gated", llama_like)
    fields.setdefault("feed_forward", -(-8 * width // 3 // 256) * 256 if llama_like else 4 * width)
    fields.setdefault("kv_heads", fields["heads"])
    fields.setdefault("tied_embedding", family in ("gpt", "moe", "mamba"))
    if family == "moe":
        fields.setdefault("experts", 8)
        fields.setdefault("top_k", 2)
    return replace(ModelShape(name, family, 1, hidden=1, heads=1, seq=1, vocab=1, feed_forward=1,
                              kv_heads=1), **{k: v for k, v in fields.items() if k != "family"})


def _check(shape: ModelShape) -> None:
    for key in ("layers", "hidden", "heads", "seq", "vocab", "feed_forward", "kv_heads", "experts", "top_k"):
        value = getattr(shape, key)
        if not 1 <= value <= MOST:
            raise UsageError(f"{key} is {value}", hint="sizes must be from 1 to 1e12")
    for key in _MAY_BE_ZERO:
        if not 0 <= getattr(shape, key) <= MOST:
            raise UsageError(f"{key} is {getattr(shape, key)}", hint="it must be between 0 and 1e12")
    if shape.attends and not shape.head_dim and shape.hidden % shape.heads:
        raise UsageError(f"hidden {shape.hidden} is not divisible by {shape.heads} heads",
                         hint="change --hidden or --heads, or give --head-dim")
    if shape.dense_layers > shape.layers:
        raise UsageError(f"{shape.dense_layers} of {shape.layers} layers cannot be dense", hint="lower --dense-layers")
    if shape.rope_dim and not shape.kv_rank:
        raise UsageError("a separate rotary part needs latent attention", hint="add --kv-rank, or drop --rope-dim")
    if shape.heads % shape.kv_heads:
        raise UsageError(f"{shape.heads} heads are not divisible by {shape.kv_heads} key-value heads",
                         hint="change --heads or --kv-heads")
    if shape.top_k > shape.experts:
        raise UsageError(f"a token cannot go to {shape.top_k} of {shape.experts} experts", hint="lower --top-k")
    if shape.parameters_given is not None and not 0 < shape.parameters_given <= MOST**2:
        raise UsageError(f"{shape.parameters_given:g} parameters", hint="sizes must be above zero and at most 1e24")
