"""Soundness of the proofs on HLO and StableHLO: programs with one place changed that are proved must compute the same.

``python bench/xla/mutants.py [--of hlo|stablehlo] [--seed N] [--count N] [--seconds S] DUMP...`` changes one place of
programs of dumps, and asks for a proof that the program is as before. Places are ops, operands, constants, groups,
dimensions, slices, comparisons, layouts, elements of tuples, reducers, pads and iotas. Each change that is proved is
executed. Prints counts by kind; exit code 1 when one of them was proved wrongly.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from hlorewrite.checks.reference.refute_worker import refute_in_subprocess
from hlorewrite.checks.translation_validation.equivalence import prove
from hlorewrite.errors import HlorewriteError
from hlorewrite.hlo.dump_chain import dump_chain
from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.ir import Module, parse
from hlorewrite.jaxbridge.validate_xla.read_hlo import read_hlo

Change = Callable[[list[str], int, random.Random], str]
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w\-.]+) = ")
_OTHER_OPS = {"add": "subtract", "subtract": "add", "multiply": "add", "maximum": "minimum", "minimum": "maximum",
              "divide": "multiply", "tanh": "exponential", "sqrt": "rsqrt", "rsqrt": "sqrt", "negate": "abs",
              "exponential": "tanh", "and": "or", "or": "and", "xor": "or", "log": "sqrt",
              "shift-right-logical": "shift-left", "shift_right_logical": "shift_left", "abs": "negate"}
_OP = re.compile(r"\b(" + "|".join(sorted(_OTHER_OPS, key=len, reverse=True)) + r")(?=[( ]%?)")
_TWO = re.compile(r"(%[\w\-.#]+), (%[\w\-.#]+)")


def another_op(lines: list[str], at: int, rnd: random.Random) -> str:
    """Another op of as many operands."""
    return _OP.sub(lambda match: _OTHER_OPS[match[1]], lines[at], count=1)


def swapped(lines: list[str], at: int, rnd: random.Random) -> str:
    """Two operands change places."""
    if re.search(r"\b(add|multiply|maximum|minimum|and|or|xor)[( ]", lines[at]):
        return lines[at]
    head, mark, rest = lines[at].partition("=")
    return head + mark + _TWO.sub(r"\2, \1", rest, count=1)


def another_number(lines: list[str], at: int, rnd: random.Random) -> str:
    """A constant that is another number."""
    def other(match: re.Match[str]) -> str:
        text = match[2]
        return match[1] + (f"{float(text) + 1}" if "." in text or "e" in text else str(int(text) + 1)) + match[3]
    return re.sub(r"(constant\(|dense<)(-?\d[\d.e+\-]*)([)>])", other, lines[at], count=1)


def other_groups(lines: list[str], at: int, rnd: random.Random) -> str:
    """Other devices communicate."""
    line = re.sub(r"replica_groups=\S+?(?=, [a-z_]+=|$)", "replica_groups={{0,1,2,3},{4,5,6,7}}", lines[at])
    line = re.sub(r"replica_groups = dense<[^>]*> : tensor<[^>]*>",
                  "replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>", line)
    return re.sub(r"source_target_pairs=\{\{0,1\},\{1,2\}", "source_target_pairs={{0,2},{1,1}", line)


def other_dimensions(lines: list[str], at: int, rnd: random.Random) -> str:
    """Dimensions in another order, or another dimension."""
    def other(match: re.Match[str]) -> str:
        numbers = match[2].replace(" ", "").split(",")
        numbers = numbers[::-1] if len(numbers) > 1 else [str(1 - min(1, int(numbers[0])))]
        return match[1] + ",".join(numbers) + match[3]
    line = re.sub(r"((?:dimensions|dims)=\{)(\d+(?:,\d+)*)(\})", other, lines[at], count=1)
    return re.sub(r"((?:dims|dim|contracting_dims|broadcast_dimensions) = \[)(\d+(?:, \d+)*)(\])", other, line, count=1)


def moved_slice(lines: list[str], at: int, rnd: random.Random) -> str:
    """A slice that begins one later, or one earlier."""
    shift = rnd.choice([-1, 1])

    def other(match: re.Match[str]) -> str:
        return f"[{int(match[1]) + shift}:{int(match[2]) + shift}"
    return re.sub(r"\[(\d+):(\d+)", other, lines[at], count=1)


def other_comparison(lines: list[str], at: int, rnd: random.Random) -> str:
    """Another direction of a comparison."""
    way = rnd.choice(["LT", "GE", "EQ", "NE", "GT", "LE"])
    return re.sub(r"compare +\w\w,", f"compare {way},", re.sub(r"direction=\w\w", f"direction={way}", lines[at]))


def other_layout(lines: list[str], at: int, rnd: random.Random) -> str:
    """A bitcast that reads memory in another order."""
    if "bitcast(" not in lines[at]:
        return lines[at]
    return re.sub(r"\{(\d+(?:,\d+)+)\}", lambda match: "{" + ",".join(match[1].split(",")[::-1]) + "}", lines[at],
                  count=1)


def other_index(lines: list[str], at: int, rnd: random.Random) -> str:
    """Another element of a tuple, or of what a loop carries."""
    line = re.sub(r" index=(\d+)", lambda match: f" index={max(0, int(match[1]) + rnd.choice([-1, 1]))}", lines[at])
    return re.sub(r"#(\d)\b", lambda match: f"#{max(0, int(match[1]) + rnd.choice([-1, 1]))}", line, count=1)


def other_operand(lines: list[str], at: int, rnd: random.Random) -> str:
    """An operand that is another value of the same type."""
    match = re.search(r"[( ](%[\w\-.]+)(?=[,) ])", lines[at].partition("=")[2])
    if match is None:
        return lines[at]
    kind = re.search(r"= (\S+) |: (tensor<[^>]*>)$", lines[at])
    if kind is None:
        return lines[at]
    same = [found[1] for line in lines[max(0, at - 40):at] if (found := _INSTRUCTION.match(line))
            and (f"= {kind[1]} " in line if kind[1] else line.endswith(f": {kind[2]}"))]
    return lines[at] if not same else lines[at].replace(match[1], f"%{rnd.choice(same)}", 1) if (
        match[1] not in lines[at].partition("=")[0]) else lines[at]


def other_iota(lines: list[str], at: int, rnd: random.Random) -> str:
    """An iota along another dimension."""
    line = re.sub(r"iota_dimension=(\d)", lambda match: f"iota_dimension={1 - min(1, int(match[1]))}", lines[at])
    return re.sub(r"iota dim = (\d)", lambda match: f"iota dim = {1 - min(1, int(match[1]))}", line)


def other_pad(lines: list[str], at: int, rnd: random.Random) -> str:
    """Padding on the other side."""
    line = re.sub(r"padding=(\d+)_(\d+)", r"padding=\2_\1", lines[at], count=1)
    return re.sub(r"low = (\[[\d, \-]*\]), high = (\[[\d, \-]*\])", r"low = \2, high = \1", line)


def other_reducer(lines: list[str], at: int, rnd: random.Random) -> str:
    """Another reducer of the module."""
    regions = sorted(set(re.findall(r"to_apply=(%[\w\-.]+)", "\n".join(lines))))
    line = re.sub(r"to_apply=%[\w\-.]+", f"to_apply={rnd.choice(regions)}", lines[at]) if regions else lines[at]
    return re.sub(r"applies stablehlo.(add|maximum)", lambda match: "applies stablehlo." + (
        "maximum" if match[1] == "add" else "add"), line)


def other_permutation(lines: list[str], at: int, rnd: random.Random) -> str:
    """The last two dimensions of a transposition change places."""
    line = re.sub(r"(transpose\(.*dimensions=\{(?:\d,)*)(\d),(\d)\}", r"\1\3,\2}", lines[at])
    return re.sub(r"(transpose .*dims = \[(?:\d, )*)(\d), (\d)\]", r"\1\3, \2]", line)


_WRONG, _NOT_RUN = "wrongly proved", "proved, not executed"
CHANGES: dict[str, Change] = {
    "op": another_op, "swap": swapped, "constant": another_number, "groups": other_groups,
    "dimensions": other_dimensions, "slice": moved_slice, "comparison": other_comparison, "layout": other_layout,
    "index": other_index, "operand": other_operand, "iota": other_iota, "pad": other_pad, "reducer": other_reducer,
    "permutation": other_permutation}


def changed(text: str, rnd: random.Random) -> tuple[str, str, str] | None:
    """(the text with one place changed, how, the line); None if no place was found."""
    lines = text.split("\n")
    places = [at for at, line in enumerate(lines) if _INSTRUCTION.match(line)]
    for _ in range(200):
        how, at = rnd.choice(list(CHANGES)), rnd.choice(places)
        try:
            line = CHANGES[how](lines, at, rnd)
        except ValueError:
            continue
        if line != lines[at]:
            shown = f"{lines[at].strip()[:140]}\n    -> {line.strip()[:140]}"
            lines[at] = line
            return "\n".join(lines), how, shown
    return None


def texts(folders: Sequence[str], of: str) -> list[tuple[str, str]]:
    """(name, text) of the programs of one device of dumps."""
    found = []
    for folder in folders:
        _, stages = dump_chain(Path(folder))
        for stage in (each for each in stages if each.local):
            name = f"{folder}/{stage.file.name}"
            found.append((name, stage.text if of == "hlo" else read_hlo(stage.parsed, name)[0].text()))
    return found


def read(text: str, name: str, of: str) -> Module:
    """A program of either form."""
    if of == "hlo":
        return read_hlo(parse_hlo(text), name)[0]
    module = parse(text, name=name)
    if module.verify():
        raise HlorewriteError("invalid")
    return module


def judged(text: str, other: str, name: str, of: str, seed: int, *, quick: bool) -> tuple[str, str, str] | None:
    """(what came of a changed program, the normal form, the counterexample); None if it is not a program."""
    try:
        before, after = read(text, name, of), read(other, name, of)
    except Exception:  # whatever reads it refuses it
        return None
    answer = prove(before, after, quick=quick)
    if not answer.proved:
        return "not proved", "", ""
    found = refute_in_subprocess(before, after, seed=seed, draws=5, seconds=20)
    kind = _WRONG if found.example else "proved, equal" if found.equal else _NOT_RUN
    return kind, answer.strategy, str(found.example or found.reason)


def in_fork(work: Callable[[], tuple[str, str, str] | None]) -> tuple[str, str, str] | None:
    """The result of some work in a separate process; None if that process ends, because XLA aborts on some texts."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(theirs, "w") as out:
            json.dump(work(), out)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        written = answer.read()
    os.waitpid(child, 0)
    if written in ("", "null"):
        return None
    kind, strategy, shown = json.loads(written)
    return kind, strategy, shown


def main() -> int:
    """Runs the trials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", nargs="+")
    parser.add_argument("--of", choices=("hlo", "stablehlo"), default="hlo")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9)
    args = parser.parse_args()
    rnd, counts, wrong, tried = random.Random(args.seed), Counter[str](), 0, 0
    until, programs = time.monotonic() + args.seconds, texts(args.dumps, args.of)
    while tried < args.count and time.monotonic() < until:
        name, text = rnd.choice(programs)
        made = changed(text, rnd)
        if made is None:
            continue
        answer = in_fork(partial(judged, text, made[0], name, args.of, tried, quick=rnd.random() < 0.8))
        if answer is None:
            counts["invalid"] += 1
            continue
        tried += 1
        counts[f"{made[1]}: {answer[0]}"] += 1
        wrong += answer[0] == _WRONG
        if answer[0] in (_WRONG, _NOT_RUN):
            print(f"{answer[0]}: {name} ({answer[1]})\n    {made[2]}\n    {answer[2]}", flush=True)
    print(f"{args.of}: {tried} programs with one place changed, {wrong} wrongly proved")
    for key, count in sorted(counts.items()):
        print(f"  {key}: {count}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
