"""Comm-Shift's published gains, each predicted without its own row, next to predictors that simulate nothing.

    python bench/predictions/comm_shift_left_out.py [--json]

For each row the constants of ``comm_shift_pipelines.py`` are fitted to the throughputs *without* Comm-Shift of the
other seven, and its gain is simulated with them. The constant predictors are the mean and the median of the other
seven's published gains: they use the gains, which the simulation does not.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from comm_shift_models import ROWS
from comm_shift_pipelines import MOST_SHARE, SWEPT_MICROBATCHES, TOLERANCE, Constants, costs, predict, samples

from hlorewrite.pipelines.schedules import one_f_one_b
from hlorewrite.pipelines.simulate import simulate
from hlorewrite.util.progress import progress


def miss(index: int, constants: Constants) -> float:
    """|log| of simulated over published throughput without Comm-Shift of one row."""
    images = ROWS[index].network.tokens == 1
    return _miss(index, replace(constants, tokens=1) if images else replace(constants, images=1))


@functools.cache
def _miss(index: int, constants: Constants) -> float:
    row = ROWS[index]
    schedule = one_f_one_b(len(row.meshes), constants.microbatches)
    seconds = simulate(schedule, costs(row, constants), overlap=False).iteration_time_s
    return abs(math.log(samples(row, constants) * constants.microbatches * row.network.tokens / seconds / row.without))


def fitted(rows: Sequence[int]) -> Constants:
    """The constants nearest to the throughputs of some rows: the grids of ``comm_shift_pipelines.fit``."""
    def missed(constants: Constants) -> float:
        return sum(miss(index, constants) for index in rows)

    coarse = min((Constants(*each) for each in itertools.product(
        (0.24, 0.32, 0.40, 0.48, 0.56, 0.64, 0.72, 0.80), (0.0, 0.2e-3, 0.6e-3, 1.0e-3, 1.4e-3, 2.0e-3, 3.0e-3),
        SWEPT_MICROBATCHES, (1024, 2048, 4096, 8192), (1, 2, 4, 8))), key=missed)
    shares = [round(coarse.peak_share + step / 100, 2) for step in range(-6, 7, 2)]
    launches = [max(round(coarse.launch_s + step / 1e4, 4), 0.0) for step in range(-3, 4)]
    return min((replace(coarse, peak_share=share, launch_s=launch) for share, launch
                in itertools.product(shares, launches) if share <= MOST_SHARE), key=missed)


def left_out(index: int) -> dict[str, Any]:
    """A row predicted from the other seven."""
    others = [each for each in range(len(ROWS)) if each != index]
    constants = fitted(others)
    gains = [ROWS[each].gain for each in others]
    return {"model": ROWS[index].name, "published": ROWS[index].gain, "constants": constants.__dict__,
            "simulated": predict(ROWS[index], constants).gain, "mean": statistics.mean(gains),
            "median": statistics.median(gains)}


def scores(rows: Sequence[dict[str, Any]], of: Callable[[dict[str, Any]], float]) -> dict[str, Any]:
    """Mean absolute error in points, rows within the tolerance, rows predicted too high, rank correlation."""
    errors = [of(row) - row["published"] for row in rows]
    return {"mean_absolute_error": statistics.mean(map(abs, errors)),
            "within": sum(abs(error) <= TOLERANCE for error in errors), "too_high": sum(error > 0 for error in errors),
            "rank_correlation": _rank_correlation([of(row) for row in rows], [row["published"] for row in rows])}


def _rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's; None for equal predictions."""
    if len(set(a)) < 2:
        return None
    ranks = [[sorted(values).index(value) for value in values] for values in (a, b)]
    return statistics.correlation(*ranks)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    rows = []
    with progress("fitting", len(ROWS)) as advance:
        for index, row in enumerate(ROWS):
            advance(row.name)
            rows.append(left_out(index))
    all_rows = fitted(range(len(ROWS)))
    for row, each in zip(rows, ROWS, strict=True):
        row["fitted to all"] = predict(each, all_rows).gain
    predictors = {name: scores(rows, lambda row, name=name: row[name])
                  for name in ("fitted to all", "simulated", "mean", "median")}
    predictors["constant 6 %"] = scores(rows, lambda _: 6.0)
    if args.json:
        print(json.dumps({"rows": rows, "predictors": predictors}, indent=2))
        return 0
    print(f"{'model':<13}{'published':>10}{'fitted to all':>15}{'left out':>10}{'mean of others':>16}{'median':>8}")
    for row in rows:
        print(f"{row['model']:<13}{row['published']:>9.2f}%{row['fitted to all']:>14.1f}%{row['simulated']:>9.1f}%"
              f"{row['mean']:>15.1f}%{row['median']:>7.1f}%")
    for name, score in predictors.items():
        rank = score["rank_correlation"]
        print(f"{'left out' if name == 'simulated' else name:<14}mean absolute error "
              f"{score['mean_absolute_error']:.1f} points, within {TOLERANCE:.0f}: {score['within']} of {len(rows)}, "
              f"too high: {score['too_high']}, rank correlation {'none' if rank is None else f'{rank:.2f}'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
