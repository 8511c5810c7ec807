"""What a page about a large run weighs, and how soon it is painted, in headless Chromium.

``python bench/viewer/view.py [--pairs 10000] [--json]`` generates a step of 10 000 pairs of all-reduces that rules
take away (100 000 ops, 20 000 rewrites), and a train step of 100 000 ops whose 400 reductions leave a loop. Of both
it measures ``opt`` with and without ``--trace``, ``view``, the page's size, the first paint as the browser reports
it, the time until everything stands, a search over everything, and 200 steps through the rewrites.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from operator import itemgetter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "unit" / "viewer"))

from browser import missing, open_browser
from generate_step import step_text

from hlorewrite.util.progress import mapped

REPEATS = 3
_PAIR = """      %l{i} = "stablehlo.all_reduce"(%a{i}) <{{{groups}}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : ({t}) -> {t}
      %r{i} = "stablehlo.all_reduce"(%b{i}) <{{{groups}}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : ({t}) -> {t}
      %a{next} = stablehlo.add %l{i}, %r{i} : {t}
      %b{next} = stablehlo.tanh %a{next} : {t}"""


def pairs_text(count: int) -> str:
    """MLIR text of a step in which pairs of all-reduces are added, one pair after the other."""
    tensor = "tensor<8xf32>"
    groups = ("channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, "
              "replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids")
    pairs = [_PAIR.format(i=i, next=i + 1, groups=groups, t=tensor) for i in range(count)]
    return "\n".join([
        "module @pairs attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {",
        '  sdy.mesh @mesh = <["data"=8]>',
        f"  func.func public @main(%w: tensor<64xf32>) -> {tensor} {{",
        '    %out = sdy.manual_computation(%w) in_shardings=[<@mesh, [{"data"}]>] out_shardings=[<@mesh, [{}]>] '
        f'manual_axes={{"data"}} (%a0: {tensor}) {{',
        f"      %b0 = stablehlo.tanh %a0 : {tensor}", *pairs,
        f"      sdy.return %a{count} : {tensor}",
        f"    }} : (tensor<64xf32>) -> {tensor}", f"    return %out : {tensor}", "  }", "}", ""])


def seconds(words: list[str]) -> float:
    """Wall-clock seconds of one command of hlorewrite."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "hlorewrite", *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def painted(page: Path) -> dict[str, float]:
    """Milliseconds in the browser: first paint, everything there, one search, one step through the rewrites.

    Empty if there is no browser.
    """
    if missing():
        return {}
    samples: dict[str, list[float]] = {}
    for _ in range(REPEATS):
        with open_browser() as browser:
            browser.open(page)
            for name, script in _MEASURED.items():
                samples.setdefault(name, []).append(float(browser.run(script)))
    return {name: statistics.median(values) for name, values in samples.items()}


_MEASURED = {
    "first_paint_ms": "return performance.getEntriesByName('first-contentful-paint')[0].startTime",
    "ready_ms": "return Number(performance.getEntriesByName('ready')[0].startTime)",
    "search_ms": """const box = document.getElementById("search"); box.value = "reduce";
        const start = performance.now(); box.dispatchEvent(new Event("input")); document.body.offsetHeight;
        const took = performance.now() - start;
        box.value = ""; box.dispatchEvent(new Event("input")); return took;""",
    "step_ms": """const start = performance.now(); const key = new KeyboardEvent("keydown", {key: "j", bubbles: true});
        for (let i = 0; i < 200; i += 1) { document.body.dispatchEvent(key); document.body.offsetHeight; }
        return (performance.now() - start) / 200;""",
}


def measure(name: str, text: str, passes: str, folder: Path) -> dict[str, float | str]:
    """One row."""
    module, trace, page = folder / f"{name}.mlir", folder / name, folder / f"{name}.html"
    module.write_text(text)
    words = ["opt", str(module), f"--pass={passes}", "--topology=h200:1x8", "-o", str(folder / "out.mlir")]
    plain = min(seconds(words) for _ in range(REPEATS))
    traced = min(seconds([*words, f"--trace={trace}"]) for _ in range(REPEATS))
    viewed = min(seconds(["view", str(trace), "-o", str(page)]) for _ in range(REPEATS))
    rewrites = len((trace / "rewrites.jsonl").read_text().splitlines())
    return {"module": name, "ops": text.count("stablehlo.") + text.count("sdy.return"), "rewrites": rewrites,
            "opt_s": plain, "opt_traced_s": traced, "view_s": viewed, "page_mb": page.stat().st_size / 1e6,
            **painted(page)}


def main() -> int:
    """Measures both modules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="one JSON object a module")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        modules = [("pairs", pairs_text(args.pairs), "rules"), ("step", step_text(100_000, 400), "comm-shift")]
        for row in mapped("measuring", modules, lambda module: measure(*module, Path(folder)), name=itemgetter(0)):
            if args.json:
                print(json.dumps(row), flush=True)
                continue
            print(f"{row['module']}: {row['ops']} ops, {row['rewrites']} rewrites")
            print(f"  opt {row['opt_s']:.2f} s, with --trace {row['opt_traced_s']:.2f} s; view {row['view_s']:.2f} s; "
                  f"page {row['page_mb']:.2f} MB")
            if why := missing():
                print(f"  not painted: {why}", flush=True)
                continue
            print(f"  first paint {row['first_paint_ms']:.0f} ms, everything {row['ready_ms']:.0f} ms, search "
                  f"{row['search_ms']:.0f} ms, step to the next rewrite {row['step_ms']:.1f} ms", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
