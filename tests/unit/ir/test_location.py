"""The user's own line is found in a call stack, whatever libraries stand in between."""

from __future__ import annotations

import pytest

from hlorewrite.ir.binding import ir
from hlorewrite.ir.context import new_context
from hlorewrite.ir.location import SourceLines, argument_path, op_name, source_lines, stamped
from hlorewrite.util.frames import Frames

FLAX = "/venv/lib/python3.11/site-packages/flax/linen/linear.py"
SYSTEM = "/usr/lib/python3/dist-packages/keras/trainer.py"
STANDARD = "/usr/lib/python3.12/functools.py"
CHECKOUT = "/home/me/src/haliax/core.py"
MODEL, TRAIN = "/home/me/job/model.py", "/home/me/job/train.py"


@pytest.mark.parametrize(("stack", "frames", "expected"), [
    ([MODEL, TRAIN], Frames(), SourceLines("model.py:1:1")),
    ([FLAX, MODEL, TRAIN], Frames(), SourceLines("model.py:2:1", "flax/linen/linear.py:1:1")),
    ([FLAX, SYSTEM, STANDARD, TRAIN], Frames(), SourceLines("train.py:4:1", "flax/linen/linear.py:1:1")),
    ([FLAX, SYSTEM], Frames(), SourceLines("flax/linen/linear.py:1:1")),
    (["<frozen importlib>", "<string>", TRAIN], Frames(), SourceLines("train.py:3:1", "<frozen importlib>:1:1")),
    ([CHECKOUT, TRAIN], Frames(), SourceLines("core.py:1:1")),
    ([CHECKOUT, TRAIN], Frames(skip=("haliax",)), SourceLines("train.py:2:1", "core.py:1:1")),
    ([MODEL, TRAIN], Frames(skip=("model",)), SourceLines("train.py:2:1", "model.py:1:1")),
    ([FLAX, TRAIN], Frames(own=("flax",)), SourceLines("flax/linen/linear.py:1:1")),
    ([CHECKOUT, TRAIN], Frames(skip=("src",), own=("haliax",)), SourceLines("core.py:1:1")),
    ([], Frames(), SourceLines("?")),
], ids=["own only", "library first", "system and standard library", "no own frame", "no files", "checkout",
        "checkout skipped", "module skipped", "library taken for own", "own wins", "unknown"])
def test_the_innermost_own_frame_is_named(stack: list[str], frames: Frames, expected: SourceLines) -> None:
    with new_context():
        files = [ir.Location.file(file, line, 1) for line, file in enumerate(stack, 1)]
        where = ir.Location.unknown()
        if files:
            where = ir.Location.callsite(files[0], files[1:]) if len(files) > 1 else files[0]
        assert source_lines(ir.Location.name("jvp()/dot_general", where), frames) == expected


def test_fused_and_nested_locations_are_read_from_the_inside_out():
    with new_context():
        model, train, flax = (ir.Location.file(file, line, 1) for line, file in enumerate((MODEL, TRAIN, FLAX), 1))
        inner = ir.Location.callsite(ir.Location.name("apply", flax), [ir.Location.name("loss", train)])
        assert source_lines(ir.Location.fused([ir.Location.name("mul"), inner, model])) == SourceLines(
            "train.py:2:1", "flax/linen/linear.py:3:1")
        span = ir.Module.parse(f'module {{}} loc("dot"("{MODEL}":37:28 to 38:4))').operation.location
        assert source_lines(span) == SourceLines("model.py:37:28")


def test_names_of_ops_and_of_arguments():
    """An op's name is around where it was written; an argument's stands alone."""
    with new_context():
        argument, op = ir.Location.name("params['w']"), ir.Location.name("jvp()/dot", ir.Location.file(MODEL, 1, 1))
        assert (argument_path(argument), argument_path(op), op_name(argument), op_name(op)) == (
            "params['w']", "", "", "jvp()/dot")
        once = stamped(op, "rule")
        assert op_name(once) == "hlorewrite.rule" and stamped(once, "rule") == once != stamped(once, "other")
