"""Command lines whose arguments are most of the input: ``reshard``, ``pipeline simulate`` and files that go with them.

A quarter of the values are out of bounds, or of another kind; the others fit their option.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GRAMMAR_FORMS = ("reshard", "pipeline", "program")
Files = tuple[tuple[str, bytes], ...]
_WRONG = ("", "x", "0", "-1", "1e999", "nan", "9" * 30, "9" * 5000, "2x", "x2", "a=", "=2", "a=2,a=2", "host+host", "-",
          "1,-1", "h200", "h200:1x8", "h200:0x8", "/dev/null", "\u00e9", "a" * 3000, "1048577", "1,1048577x1")
_TABLES = (b"F0 F1 B0 B1\nF0 B0 F1 B1\n", b"F0 B0\n", b"F0 F0 B0 B0\nB0 F0\n", b"W0 F0 B0\nF0 B0 W0\n", b"\n\n",
           b"F99 B99\n", b"F0 F1 B1 B0\nF0 B0 F1 B1\n")


def reshard_words(random_: random.Random) -> tuple[str, ...]:
    """A command line of ``reshard``: meshes of up to 64 devices, shapes of up to four dimensions."""
    rank = random_.choice((0, 1, 1, 2, 2, 2, 3, 4))
    named = random_.random() < 0.3
    meshes = [_mesh(random_, named) for _ in range(2)]
    options = {
        "--shape": ",".join(str(random_.choice((1, 2, 3, 4, 6, 8, 16, 64, 1000, 2**20))) for _ in range(rank)),
        "--src-mesh": meshes[0][0], "--dst-mesh": meshes[1][0],
        "--src-spec": _spec(random_, rank, meshes[0][1]), "--dst-spec": _spec(random_, rank, meshes[1][1]),
        "--dtype": random_.choice(("float32", "bf16", "int8", "f8e4m3fn", "complex128", "i4", "bool")),
    }
    strategies = ("auto", "send-recv", "all-gather", "global-all-gather", "trees", "broadcast")
    for option, values in (
            ("--strategy", strategies), ("--order", ("naive", "size", "optimal")),
            ("--sender", ("first", "least-loaded")),
            ("--topology", ("p3.8xlarge", "h200", "h200:2x8", "a100:8x8")),
            ("--dst-first-device", ("0", "1", "4", "1000", "-3", str(2**63))), ("--target", ("gpu", "cpu")),
            ("--chunk-bytes", ("0", "1", "1024", "-5", str(10**12))), ("--emit-module", ("made.mlir", "-")),
            ("--json", ("",)), ("--gantt", ("g.svg", "g.doc"))):
        if random_.random() < (0.05 if option == "--gantt" else 0.3):
            options[option] = random_.choice(values)
    return ("reshard", *_words(options, random_))


def pipeline_words(random_: random.Random) -> tuple[str, ...]:
    """A command line of ``pipeline simulate`` without a program."""
    stages = random_.choice((1, 2, 3, 4, 8, 32))
    options = {"--stages": str(stages), "--microbatches": str(random_.choice((1, 2, 4, 7, 64))),
               "--fwd": random_.choice(("1ms", "0.5", "10us", "1ms,2ms", ",".join(["1ms"] * stages)))}
    for option, values in (("--bwd", ("2ms", "1ms", "0")), ("--schedule", (
            "1f1b", "gpipe", "interleaved-1f1b", "eager-1f1b", "zero-bubble", "zb-h1", "dualpipe")),
            ("--topology", ("h200", "h200:4x8", "a100")), ("--act-bytes", ("1MiB", "0", "1TiB")), ("--json", ("",)),
            ("--trace", ("run",)), ("--slowdown", ("0.1", "0", "1", "5"))):
        if random_.random() < 0.35:
            options[option] = random_.choice(values)
    if random_.random() < 0.3:
        options["--meshes"] = ",".join(random_.choice(("(1x1)", "(4x1)", "(2x4)")) for _ in range(stages))
    if random_.random() < 0.15:
        options["--table"] = "table.txt"
    return ("pipeline", "simulate", *_words(options, random_))


def pipeline_files(random_: random.Random) -> Files:
    """The schedule that ``--table`` names."""
    return (("table.txt", random_.choice(_TABLES)),)


def program_files() -> Files:
    """A program of two meshes, its measured times, and a schedule."""
    times = {"fragments": {"forward_0": 0.001, "forward_1": 0.002, "backward_0": 0.002, "backward_1": 0.004},
             "transfers": {"transfer 0": 0.0001, "transfer 1": 0.0002}}
    return (("times.json", json.dumps(times).encode()),
            ("program.mlir", (ROOT / "tests" / "programs" / "two_stages.mlir").read_bytes()),
            ("table.txt", b"F0 F1 F2 F3 B0 B1 B2 B3\nF0 B0 F1 B1 F2 B2 F3 B3\n"))


PROGRAM_COMMANDS = (
    ("pipeline", "simulate", "program.mlir", "--times=times.json", "--topology=h200:1x8"),
    ("pipeline", "simulate", "program.mlir", "--times=times.json", "--topology=h200:1x8", "--json"),
    ("pipeline", "simulate", "program.mlir", "--topology=h200:2x4", "--table=table.txt"),
    ("report", "program.mlir"), ("opt", "program.mlir", "-O", "comm", "-o", "out"))


def _mesh(random_: random.Random, named: bool) -> tuple[str, tuple[str, ...]]:
    if not named:
        return f"{random_.choice((1, 2, 3, 4))}x{random_.choice((1, 2, 4, 8))}", ("host", "gpu", "all")
    axes = random_.sample(("data", "model", "x", "pipe"), random_.choice((1, 2, 3)))
    return ",".join(f"{axis}={random_.choice((1, 2, 3, 4))}" for axis in axes), tuple(axes)


def _spec(random_: random.Random, rank: int, axes: tuple[str, ...]) -> str:
    left = [axis for axis in axes if axis != "all"]
    parts = []
    for _ in range(rank):
        kind = random_.randrange(4)
        if kind == 0 and left:
            parts.append(left.pop(random_.randrange(len(left))))
        elif kind == 1 and len(left) > 1:
            parts.append("+".join(left))
            left = []
        else:
            parts.append("-")
    return ",".join(parts)


def _words(options: dict[str, str], random_: random.Random) -> list[str]:
    for _ in range(random_.choice((0, 0, 0, 1, 1, 2))):
        option = random_.choice(sorted(options))
        if random_.random() < 0.2:
            del options[option]
        else:
            options[option] = random_.choice(_WRONG)
    return [option if option == "--json" else f"{option}={value}" for option, value in options.items()]
