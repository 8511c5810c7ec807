"""Pictures of the cost model: traffic, effective bandwidth, breakdown, search frontier. Needs the ``viz`` extra.

Figures have a transparent background and mid-grey text and axes, so that they read on light and dark pages.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.collectives.bandwidth import bus_factor
from hlorewrite.cost.collectives.models import NcclModel
from hlorewrite.cost.training.iteration import Estimate
from hlorewrite.cost.training.search import PARTS, Candidate
from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.util.optional_dependencies import install

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

INK = "#7f7f7f"  # legible on white and on near-black
COLOURS = ("#4477aa", "#ee6677", "#bbbbbb", "#228833", "#ccbb44", "#66ccee", "#aa3377")  # Paul Tol's bright scheme


def _figure(width: float = 7.0, height: float = 4.2) -> tuple[Any, Any]:
    """An empty figure in the common style."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise HlorewriteError("pictures need matplotlib", hint=install("viz")) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0.0)
    axes = figure.add_subplot()
    _style(axes)
    return figure, axes


def _style(axes: Any) -> None:
    axes.patch.set_alpha(0.0)
    axes.tick_params(colors=INK, which="both")
    for spine in axes.spines.values():
        spine.set_color(INK)
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        text.set_color(INK)


def _legend(axes: Any, **where: Any) -> None:
    axes.legend(frameon=False, labelcolor=INK, **where)


def check_picture(path: str) -> None:
    """Refuses a picture that could not be written.

    Raises:
      UsageError: the name does not end in a known form.
      HlorewriteError: matplotlib is missing.
    """
    if path.rpartition(".")[2].lower() not in ("png", "svg"):
        raise UsageError(f'"{path}" is neither PNG nor SVG', hint="use a name that ends in .png or .svg")
    if find_spec("matplotlib") is None:
        raise HlorewriteError("pictures need matplotlib", hint=install("viz"))


def save(figure: Any, path: str) -> None:
    """Writes a figure, without a time stamp.

    Args:
      figure: a matplotlib figure.
      path: ends in ``.png`` or ``.svg``.

    Raises:
      UsageError: another ending.
    """
    from hlorewrite.util.write import write_file
    check_picture(path)
    ending = path.rpartition(".")[2].lower()
    import matplotlib
    out = io.BytesIO()
    extra: dict[str, Any] = {"metadata": {"Date": None}} if ending == "svg" else {"dpi": 160}
    with matplotlib.rc_context({"svg.hashsalt": "hlorewrite"}):
        figure.savefig(out, format=ending, **extra)
    write_file(path, out.getvalue())


def draw_traffic(matrix: Array, *, stage_gpus: int | None = None, tensor_gpus: int | None = None,
                 title: str = "") -> Any:
    """A heat map of bytes from GPU to GPU, parallel groups marked.

    Args:
      matrix: bytes from row to column, shape (GPUs, GPUs).
      stage_gpus: GPUs of a pipeline stage, outlined.
      tensor_gpus: GPUs of a tensor-parallel group, with a thin outline.
      title: what it shows.

    Returns:
      The figure.
    """
    import matplotlib
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.patches import Rectangle
    figure, axes = _figure(6.2, 5.2)
    shown = np.ma.masked_less_equal(matrix, 0)
    norm = LogNorm(vmin=float(shown.min()), vmax=float(shown.max())) if shown.count() else None
    light = matplotlib.colormaps["viridis"](np.linspace(0.2, 1.0, 256))  # its darkest end vanishes on dark pages
    cmap = LinearSegmentedColormap.from_list("viridis-light", light)
    picture = axes.imshow(shown, cmap=cmap, norm=norm, interpolation="nearest")
    bar = figure.colorbar(picture, ax=axes, label="bytes per iteration")
    bar.ax.tick_params(colors=INK, which="both")
    bar.ax.yaxis.label.set_color(INK)
    bar.outline.set_edgecolor(INK)
    gpus = len(matrix)
    for size, line, name in ((stage_gpus, 1.4, "pipeline stage"), (tensor_gpus, 0.7, "tensor-parallel group")):
        if not size or size < 2 or size == gpus:
            continue
        colour = COLOURS[1] if size == stage_gpus else COLOURS[5]
        for first in range(0, gpus, size):
            label = name if first == 0 else None
            axes.add_patch(Rectangle((first - 0.5, first - 0.5), size, size, fill=False, edgecolor=colour,
                                     linewidth=line, label=label))
    if axes.patches:
        _legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    axes.set(xlabel="to GPU", ylabel="from GPU", title=title)
    _style(axes)
    return figure


def draw_bandwidth(times: NcclModel, groups: Sequence[Sequence[int]], *, kinds: Sequence[str],
                   points: Sequence[tuple[float, float]] = ()) -> Any:
    """Effective (bus) bandwidth over message size.

    Args:
      times: the collective model.
      groups: device numbers of each group.
      kinds: collectives to draw.
      points: measured (bytes, GB/s) to set next to the first kind.

    Returns:
      The figure.
    """
    figure, axes = _figure()
    sizes = [2 ** (exponent / 2) for exponent in range(20, 69)]
    ranks = max(len(group) for group in groups)
    for kind, colour in zip(kinds, COLOURS, strict=False):
        rates = []
        for size in sizes:
            time = times.collective_time(kind, int(size), groups)
            rates.append(size / time * bus_factor(kind, ranks) / 1e9 if time else 0.0)
        axes.plot(sizes, rates, color=colour, linewidth=2, label=kind)
    if points:
        axes.plot(*zip(*points, strict=True), linestyle="", marker="o", markersize=4, color=INK, label="measured")
    axes.set_xscale("log", base=2)
    axes.set(xlabel="bytes of one device", ylabel="bus bandwidth, GB/s",
             title=f"{ranks} GPUs of {times.topology.spec}")
    axes.grid(True, color=INK, alpha=0.25)
    _legend(axes)
    _style(axes)
    return figure


def draw_breakdown(estimates: Sequence[Estimate], names: Sequence[str]) -> Any:
    """Stacked bars of what an iteration spends its time on.

    Args:
      estimates: one a bar.
      names: one for each.

    Returns:
      The figure.
    """
    figure, axes = _figure(7.0, 2.0 + 0.55 * len(estimates))
    start = [0.0] * len(estimates)
    for (field, label), colour in zip(PARTS, COLOURS, strict=True):
        parts = [getattr(each, field) for each in estimates]
        if any(parts):
            axes.barh(list(names), parts, left=start, color=colour, label=label, height=0.6)
        start = [before + part for before, part in zip(start, parts, strict=True)]
    axes.invert_yaxis()
    axes.set(xlabel="seconds of an iteration", ylabel="(p,t,d)")
    figure.legend(frameon=False, labelcolor=INK, loc="outside upper center", ncols=3)
    _style(axes)
    return figure


def draw_frontier(candidates: Sequence[Candidate]) -> Any:
    """Iteration time over memory of all candidates, and the frontier that none of them beats in both.

    Args:
      candidates: candidates of a search, the fastest first.

    Returns:
      The figure.

    Raises:
      UsageError: nothing fits, so there is nothing to draw.
    """
    if not candidates:
        raise UsageError("nothing to draw: no configuration fits", hint="try --recompute, --zero or more GPUs")
    spots = [(each.cost.memory_bytes_per_gpu / 2**30, each.cost.iteration_time_s) for each in candidates]
    frontier, least = [], float("inf")
    for each, spot in zip(candidates, spots, strict=True):  # fastest first
        if spot[0] < least:
            least = spot[0]
            frontier.append((spot, f"({each.sizes.pp},{each.sizes.tp},{each.sizes.dp}) b{each.sizes.micro_batch}"))
    return draw_times(spots, frontier, of="configuration", ylabel="seconds of an iteration",
                      title="(p,t,d) and micro-batch b")


def draw_times(spots: Sequence[tuple[float, float]], frontier: Sequence[tuple[tuple[float, float], str]], *, of: str,
               ylabel: str, title: str) -> Any:
    """Times over memory, and the frontier of those that no other one beats in both.

    Args:
      spots: (GiB of a GPU, time) of each.
      frontier: those on it with their labels, the fastest first.
      of: the name of one of them.
      ylabel: what the times are, with their unit.
      title: above the picture.

    Returns:
      The figure.
    """
    figure, axes = _figure()
    axes.scatter(*zip(*spots, strict=True), s=14, color=COLOURS[0], alpha=0.6, label=of)
    if frontier:
        axes.plot(*zip(*(spot for spot, _ in frontier), strict=True), color=COLOURS[1], marker="o", markersize=5,
                  label="frontier")
    wide, high = (max(column) - min(column) for column in zip(*spots, strict=True))
    labelled: list[tuple[float, float]] = []
    for spot, name in frontier:
        if any(abs(spot[0] - x) < 0.18 * wide and abs(spot[1] - y) < 0.06 * high for x, y in labelled):
            continue  # a label there would cover its neighbour's
        labelled.append(spot)
        axes.annotate(name, spot, textcoords="offset points", xytext=(6, 6), color=INK, fontsize=8)
    axes.set(xlabel="memory of a GPU, GiB", ylabel=ylabel, title=title)
    axes.grid(True, color=INK, alpha=0.25)
    _legend(axes)
    _style(axes)
    return figure
