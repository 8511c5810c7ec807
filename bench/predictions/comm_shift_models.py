"""The eight rows of Comm-Shift's Table 1, and what is publicly known about their models.

Rows: Hosoki, Sato, Endo, Bigot, Audit, "An Optimization Technique for Hiding Communication Costs in 3D Parallelism",
CCGrid 2025: throughput without and with Comm-Shift on TSUBAME4.0, and the mesh (data x tensor) of each stage.
Models: GPT-2, GPT-J, ViT and Mamba as in ``hlorewrite.cost.training.model``; SwinV2-L (arXiv 2111.09883: 197 M
parameters, 47.5 G multiply-adds at 256 x 256, depths 2-2-18-2, width 192); CoAtNet-7 (arXiv 2106.04803: 2.44 G
parameters, 2586 G multiply-adds at 512 x 512, two convolutions, 2-4-8 MBConv and 42-2 transformer blocks of width 192
to 3072).
The paper's poster names neither input sizes nor batches: images are taken at the sizes of the models' own papers.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlorewrite.cost import model

HALF = 2  # bytes of a bfloat16


@dataclass(frozen=True)
class ModelSizes:
    """What one sample (a sequence or an image) costs in the forward pass of the whole model, and its parameters.

    Args:
      flops: floating-point operations of matrix products and convolutions.
      moved_bytes: bytes that everything else moves through memory.
      body: parameters spread over all stages.
      first: further parameters of the first stage (embedding, positions).
      last: further parameters of the last stage (head; a tied embedding has its gradient there too).
      boundary_bytes: activation between two stages.
      tokens: what throughput counts in a sample: its tokens, or 1 image.
      reduced_bytes: what tensor parallelism all-reduces in the forward pass of the whole model.
      layers: number of layers, for the count of those reductions.
    """

    flops: float
    moved_bytes: float
    body: float
    first: float
    last: float
    boundary_bytes: float
    tokens: int
    reduced_bytes: float = 0.0
    layers: int = 0


@dataclass(frozen=True)
class ModelRow:
    """A row of the table.

    Args:
      name: the model.
      network: its costs.
      meshes: (data, tensor) of each stage.
      without: published throughput without Comm-Shift, samples' tokens or images a second.
      with_shift: the same with it.
      gain: published gain in percent.
    """

    name: str
    network: ModelSizes
    meshes: tuple[tuple[int, int], ...]
    without: float
    with_shift: float
    gain: float

    @property
    def gpus(self) -> int:
        """GPUs of all meshes."""
        return sum(data * tensor for data, tensor in self.meshes)


def attention_bytes(width: float, heads: float, keys: float) -> float:
    """Bytes a transformer layer's forward moves for one token, in addition to products, without fused attention.

    Norms, dropouts and residuals 11 elements of the width, the activation function 2 of four widths, scores and
    softmax 6.5 elements for each head and key: the count of ``hlorewrite/cost/kernels/rates.py``.
    """
    return HALF * (11 * width + 2 * 4 * width + 6.5 * heads * keys)


def transformer(name: str) -> ModelSizes:
    """A GPT of ``hlorewrite.cost.training.model``."""
    shape = model(name)
    table = shape.embedding_parameters
    per_token = shape.layers * (shape.layer_weights + 2 * shape.seq * shape.hidden) + table
    moved = shape.layers * attention_bytes(shape.hidden, shape.heads, shape.seq) + 4 * HALF * shape.vocab
    boundary = HALF * shape.seq * shape.hidden
    return ModelSizes(2 * per_token * shape.seq, moved * shape.seq, shape.layers * shape.layer_weights,
                      table + shape.position_parameters, table, boundary, shape.seq, 2 * shape.layers * boundary,
                      shape.layers)


def mamba() -> ModelSizes:
    """Mamba-1.4B with its scan as an associative scan over states in memory, as JAX runs it without a fused kernel.

    States are 16 f32 for each of 2h channels; of the two arrays each is written once, and read and written in both
    sweeps of the scan; the result is read once: 11 passes.
    """
    shape = model("mamba-1.4b")
    table = shape.embedding_parameters
    scan = 11 * 4 * 2 * shape.hidden * 16
    moved = shape.layers * (scan + HALF * 8 * 2 * shape.hidden) + 4 * HALF * shape.vocab
    return ModelSizes(2 * (shape.layers * shape.layer_weights + table) * shape.seq, moved * shape.seq,
                      shape.layers * shape.layer_weights, table, table, HALF * shape.seq * shape.hidden, shape.seq)


def vit() -> ModelSizes:
    """ViT-base with patches of 16 at 224 x 224: 86 M parameters, 17.6 G multiply-adds."""
    shape = model("vit-base")
    moved = shape.layers * attention_bytes(shape.hidden, shape.heads, shape.seq) * shape.seq
    return ModelSizes(2 * 17.6e9, moved, 86e6, 0.0, 0.0, HALF * shape.seq * shape.hidden, 1)


def swin() -> ModelSizes:
    """SwinV2-L at 256 x 256 with windows of 16: heads of 32 channels over 256 keys (64 in the last stage)."""
    parts = ((2, 4096, 192, 256), (2, 1024, 384, 256), (18, 256, 768, 256), (2, 64, 1536, 64))
    moved = sum(depth * tokens * attention_bytes(width, width / 32, keys) for depth, tokens, width, keys in parts)
    return ModelSizes(2 * 47.5e9, moved, 197e6, 0.0, 0.0, HALF * 256 * 768, 1)


def coatnet() -> ModelSizes:
    """CoAtNet-7 at 512 x 512, the one size its paper gives it.

    An MBConv of width D reads and writes 4D channels after its expansion, its depthwise convolution and its
    squeeze-excitation: 38 D elements a pixel.
    """
    convolutions = 2 * 256**2 * 192 * 6 + 38 * (2 * 128**2 * 256 + 4 * 64**2 * 512 + 8 * 32**2 * 1024)
    attention = 42 * 1024 * attention_bytes(2048, 16, 1024) + 2 * 256 * attention_bytes(3072, 24, 256)
    return ModelSizes(2 * 2586e9, HALF * convolutions + attention, 2.44e9, 0.0, 0.0, HALF * 1024 * 2048, 1)


ROWS = (
    ModelRow("GPT-2 Small", transformer("gpt2-small"), ((8, 1),) * 2, 2019190, 2073480, 2.69),
    ModelRow("GPT-2 Large", transformer("gpt2-large"), ((8, 1),) * 2, 403880, 419156, 3.78),
    ModelRow("GPT-2 XL", transformer("gpt2-xl"), ((16, 1),) * 2, 477236, 508616, 6.58),
    ModelRow("GPT-J-6B", transformer("gpt-j-6b"), ((8, 1), (4, 2), (4, 2), (4, 2)), 143158, 181812, 27.00),
    ModelRow("Mamba-1.4B", mamba(), ((2, 1),) * 8, 29786, 30913, 3.79),
    ModelRow("ViT-base", vit(), ((2, 1),) * 4, 1192, 1306, 9.55),
    ModelRow("SwinV2-L", swin(), ((4, 1), (2, 1), (4, 1), (4, 1), (2, 1)), 1827, 1893, 3.60),
    ModelRow("CoAtNet-7", coatnet(), ((8, 1),) * 2, 384, 444, 15.36),
)
