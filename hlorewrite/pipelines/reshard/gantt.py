"""A picture of a plan: which link is busy when."""

import io
from pathlib import Path

import numpy as np

from hlorewrite.errors import OutputError, UsageError
from hlorewrite.pipelines.reshard.plan import ReshardPlan
from hlorewrite.util.optional_dependencies import install

ENDINGS = (".png", ".svg", ".pdf")
MOST_BARS = 20_000


def link_bars(plan: ReshardPlan) -> list[tuple[str, float, float, int]]:
    """When each NIC link carries which job; neighbouring rows of a job make one bar.

    Args:
      plan: the plan.

    Returns:
      (link, start in seconds, end in seconds, job), by link and start. Links are called
      ``host H out`` or ``host H NIC N in``.
    """
    network, bars = plan.network, {}
    for row in range(len(plan.rows)):
        job = int(plan.job[row])
        entry = [port for port in plan.entry[job].tolist() if port >= 0]
        if not entry:
            continue
        names = [] if plan.rows.gather[row] else [_link(int(network.port[plan.sender[row]]), "out", plan)]
        names += [_link(port, "in", plan) for port in entry]
        names += [_link(port, "out", plan) for port in (entry if plan.rows.gather[row] else entry[:-1])]
        for name in names:
            start, end, _ = bars.get((name, job), (np.inf, 0.0, 0))
            bars[name, job] = min(start, float(plan.start_s[row])), max(end, float(plan.end_s[row])), job
    return sorted(((name, *bar) for (name, _), bar in bars.items()), key=lambda bar: (_link_order(bar[0]), bar[1]))


def _link(port: int, way: str, plan: ReshardPlan) -> str:
    nics = plan.network.nics_per_host
    return f"host {port // nics} {way}" if nics == 1 else f"host {port // nics} NIC {port % nics} {way}"


def _link_order(name: str) -> tuple[int, ...]:
    return (name.endswith(" in"), *(int(word) for word in name.split() if word.isdecimal()))


def gantt(plan: ReshardPlan, path: str) -> bytes:
    """Draws the links of a plan over time.

    Args:
      plan: the plan.
      path: the output file; its ending determines the format.

    Returns:
      The file's content, the same for the same plan.

    Raises:
      UsageError: the ending is unknown.
      OutputError: matplotlib is missing, or the plan is too large to draw.
    """
    ending = check_ending(path)
    bars = link_bars(plan)
    if len(bars) > MOST_BARS:
        raise OutputError(f"the plan has {len(bars)} bars, too many to draw", location=path,
                          hint="draw a smaller mesh, or use --json")
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise OutputError("drawing needs matplotlib", location=path, hint=install("viz")) from None
    names = list(dict.fromkeys(bar[0] for bar in bars)) or ["no link"]
    with rc_context({"svg.hashsalt": "hlorewrite", "svg.fonttype": "path"}):
        figure = Figure(figsize=(10, 1.2 + 0.28 * len(names)), layout="constrained")
        axes = figure.add_subplot()
        for i, name in enumerate(names):
            of_link = [bar for bar in bars if bar[0] == name]
            axes.broken_barh([(start, end - start) for _, start, end, _ in of_link], (i - 0.4, 0.8),
                             facecolors=[f"C{job % 10}" for *_, job in of_link], edgecolor="white", linewidth=0.5)
        axes.axvline(plan.lower_bound_s, color="black", linestyle=":", label="lower bound")
        axes.set(yticks=range(len(names)), yticklabels=names, xlabel="seconds",
                 title=f"{plan.strategy}, {plan.order} order: {plan.makespan_s:.4g} s, gap {plan.gap:.1%}")
        axes.invert_yaxis()
        axes.legend(loc="lower right")
        out = io.BytesIO()
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {})
        figure.savefig(out, format=ending[1:], metadata=metadata)
    return out.getvalue()


def check_ending(path: str) -> str:
    """The extension of a picture's file.

    Raises:
      UsageError: the extension is unknown.
    """
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(f'"{path}" has an unknown file extension',
                         hint=f"use a name that ends in one of {', '.join(ENDINGS)}")
    return ending
