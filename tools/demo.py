"""The whole way once: export a sharded GPT train step, rewrite it, compile it for eight H200s, run it on eight CPUs.

Usage: ``make demo``, or ``python tools/demo.py [--size tiny|small] [--folder build/demo]``. Needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def say(text: str = "") -> None:
    """One line of the demo."""
    print(text, flush=True)


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command in the project's folder, showing it first; stops the demo when it fails."""
    say(f"$ {' '.join(words)}")
    command = [sys.executable, "-m", "hlorewrite", *words[1:]] if words[0] == "hlorewrite" else \
        [sys.executable, *words[1:]]
    environment = dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3",
                       PYTHONPATH=os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])))
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        say(done.stdout + done.stderr)
        sys.exit(done.returncode)
    return done


def kib(count: float) -> str:
    """Bytes as KiB."""
    return f"{count / 1024:,.1f} KiB"


def show_collectives(title: str, compiled: dict) -> None:
    """The collectives of one compilation."""
    say(f"  {title}")
    for collective in compiled["collectives"]:
        place = f"in {collective['loop_depth']} loop(s)" if collective["loop_depth"] else "outside loops"
        say(f"    {collective['kind']}  {kib(collective['bytes'])} x {collective['trips']} = "
            f"{kib(collective['executed_bytes'])}  {place}  {collective['source']}")
    memory = compiled["memory"]
    total = memory["argument"] + memory["output"] + memory["temp"] - memory["alias"]
    say(f"    memory of a device {kib(total)}; XLA compiled it in {compiled['compile_s']:.1f} s")


def main() -> int:
    """Runs the demo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=["tiny", "small"], default="small")
    parser.add_argument("--folder", default="build/demo")
    args = parser.parse_args()
    started = time.perf_counter()
    folder = Path(args.folder)
    (ROOT / folder).mkdir(parents=True, exist_ok=True)
    before, after = str(folder / "step.export"), str(folder / "shifted.export")

    say("1. Export a GPT train step: 8 micro-batches, AdamW, gradients averaged over 8 devices inside the loop.")
    run(["python", "examples/gpt.py", "--size", args.size, "--out", before])
    say()
    say("2. Rewrite it: reduce once, after the loop.")
    done = run(["hlorewrite", "opt", before, "--pass=comm-shift", "--emit=export", "-o", after, "--remarks=applied"])
    remarks = done.stderr.splitlines()
    for line in remarks[:3]:
        say(f"  {line}")
    if len(remarks) > 3:
        say(f"  ... and {len(remarks) - 3} more like these")
    say()
    say("3. Compile both for eight H200s, without a GPU.")
    compiled = {name: json.loads(run(["hlorewrite", "compile", name, "--target", "h200:1x8", "--json"]).stdout)
                for name in (before, after)}
    show_collectives("before", compiled[before])
    show_collectives("after", compiled[after])
    old, new = (sum(compiled[name]["executed_bytes"].values()) for name in (before, after))
    say(f"  executed bytes of a device: {kib(old)} before, {kib(new)} after, {old / new:.2f} times less")
    say()
    say("4. Run both on eight CPU devices with the same random state and tokens.")
    verified = json.loads(run(["hlorewrite", "verify", before, after, "--json"]).stdout)
    worst = max(output["max_rel_error"] for output in verified["outputs"])
    say(f"  {len(verified['outputs'])} outputs, largest relative error {worst:.1e}: "
        f"{'equal' if verified['equal'] else 'NOT EQUAL'}")
    say()
    say(f"Done in {time.perf_counter() - started:.0f} s. The modules are in {folder}.")
    return 0 if verified["equal"] else 3


if __name__ == "__main__":
    sys.exit(main())
