"""Programs that show a wrong rule or fact to be wrong: two modules, before and after, that compute different values.

A fact that the solver refutes comes with elements; they are written into a module for two devices. If there are none
(quantified claims leave the solver without a model), programs of ``rules check`` are executed. A program counts only
when the reference interpreter finds the values to differ.

``python -m hlorewrite.checks.prove.counterexamples FILE NAME [NATIVES...]`` prints the two modules as JSON, or null:
the interpreter ends its process on some programs, so the search runs in one of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from hlorewrite.checks.prove.elements import TYPES, sort_of
from hlorewrite.checks.prove.prove import prove_file
from hlorewrite.checks.prove.verdict import REFUTED, Verdict
from hlorewrite.checks.reference.check import check
from hlorewrite.checks.reference.rule_checks.facts import fact_programs
from hlorewrite.checks.reference.rule_checks.instances import NotGenerated, instance
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir import Module, View, parse
from hlorewrite.rules.apply.driver import apply_rules
from hlorewrite.rules.compile.compiled import CompiledRule
from hlorewrite.rules.facts import CompiledFact
from hlorewrite.rules.library import load
from hlorewrite.rules.register import load_natives
from hlorewrite.rules.syntax import ast
from hlorewrite.util.parent_process import end_with_parent
from hlorewrite.util.tolerances import FACT_TOLERANCE
from hlorewrite.util.write import write_file

Programs = tuple[str, str]
_PROGRAMS = 60
_SEEDS = (0, 1, 2)
_REDUCERS = {"sum": "add", "product": "multiply", "max": "maximum", "min": "minimum", "and": "and", "or": "or"}
_ONE_DIMENSIONAL = ("add", "subtract", "negate", "multiply", "divide", "maximum", "minimum", "clamp", "and", "or",
                    "convert", "real", "imag", "complex")


def write_counterexample(verdict: Verdict, programs: Programs, folder: str) -> str:
    """Writes the two modules; returns how to run them.

    Args:
      verdict: what they refute.
      programs: before and after.
      folder: the folder; it is created if it does not exist.

    Raises:
      OutputError: they cannot be written.
    """
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, f"{verdict.name}.{side}.mlir") for side in ("before", "after")]
    for path, text in zip(paths, programs, strict=True):
        write_file(path, text.encode())
    return f"hlorewrite verify {' '.join(paths)}"


def counterexample(file: str, name: str, natives: Sequence[str] = ()) -> Programs | None:
    """Two modules that show a rule or fact to be wrong, from a separate process; None if none is found.

    Args:
      file: a path, or the name of a shipped file.
      name: the rule or fact.
      natives: modules that register natives, for the process to import.
    """
    command = [sys.executable, "-m", __name__, file, name, *natives]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    found = json.loads(lines[-1]) if done.returncode == 0 and lines else None
    return (found[0], found[1]) if found else None


def search(file: str, name: str) -> Programs | None:
    """The same, in this process."""
    loaded = load(file)
    for programs in _candidates(loaded.rules, loaded.facts, file, name):
        if differ(*programs):
            return programs
    return None


def _candidates(rules: Sequence[CompiledRule], facts: Sequence[CompiledFact], file: str,
                name: str) -> Iterator[Programs]:
    for rule in rules:
        if rule.name == name:
            yield from _rewritten(rule)
    for fact in facts:
        if fact.name == name:
            verdict = next((v for v in prove_file(file, (name,)) if v.status == REFUTED), None)
            programs = from_model(fact.fact, verdict) if verdict else None
            yield from (programs,) if programs else ()
            yield from fact_programs(fact)


def _rewritten(rule: CompiledRule) -> Iterator[Programs]:
    """Programs that the match block describes, before and after the rule."""
    for seed in range(_PROGRAMS):
        try:
            before = instance(rule.rule, seed)
        except NotGenerated:
            return
        if before is None:
            continue
        after = before.clone()
        try:
            fired = apply_rules([rule], View(after))
        except HlorewriteError:
            continue
        if fired and not after.verify():
            yield before.text(), after.text()


def differ(before: str, after: str) -> bool:
    """Whether two modules compute different values."""
    try:
        modules: list[Module] = [parse(text) for text in (before, after)]
        return any(not check(*modules, seed=seed, tolerance=FACT_TOLERANCE).equal for seed in _SEEDS)
    except HlorewriteError:
        return False


# ---- modules from a model


def from_model(fact: ast.Linear, verdict: Verdict) -> Programs | None:
    """A fact's two sides on two devices, with the elements of the model; None if the op needs more than elements.

    Args:
      fact: the fact.
      verdict: its refutation.
    """
    pattern = fact.match.statements[0]
    op = verdict.op.removeprefix("stablehlo.")
    if not isinstance(pattern, ast.OpPattern) or op not in _ONE_DIMENSIONAL or not verdict.types:
        return None
    names = [o.name for o in pattern.operands if isinstance(o, ast.ValueRef)]
    linear = {o.name for o in fact.operands.operands}
    *types, result = verdict.types
    if len(names) != len(types) or any(e not in TYPES for e in types):
        return None
    lines = ["%id = stablehlo.partition_id : tensor<ui32>", "%zero = stablehlo.constant dense<0> : tensor<ui32>"]
    for name, element in zip(names, types, strict=True):
        rows = [_element(verdict.model, f"{prefix}{name}[j]", element) for prefix in (
            ("x_", "y_") if name in linear else ("", "y_"))]
        if name not in linear and f"y_{name}[j]" not in {n.partition(".")[0] for n, _ in verdict.model}:
            rows[1] = rows[0]
        if None in rows:
            return None
        lines += [f"%table_{name} = stablehlo.constant dense<[{rows[0]}, {rows[1]}]> : tensor<2x{element}>",
                  f"%{name} = stablehlo.dynamic_slice %table_{name}, %id, sizes = [1] : "
                  f"(tensor<2x{element}>, tensor<ui32>) -> tensor<1x{element}>"]
    return (_sides(lines, op, names, linear, types, result, kind=verdict.kind, reduce_first=True),
            _sides(lines, op, names, linear, types, result, kind=verdict.kind, reduce_first=False))


def _sides(lines: list[str], op: str, names: list[str], linear: set[str | None], types: list[str], result: str,
           *, kind: str, reduce_first: bool) -> str:
    body = list(lines)
    operands = [f"%{name}" for name in names]
    if reduce_first:
        for i, name in enumerate(names):
            if name in linear:
                body.append(_all_reduce(f"%sum_{name}", f"%{name}", types[i], kind))
                operands[i] = f"%sum_{name}"
    made = "%made" if not reduce_first else "%result"
    body.append(f'{made} = "stablehlo.{op}"({", ".join(operands)}) : '
                f'({", ".join(f"tensor<1x{e}>" for e in types)}) -> tensor<1x{result}>')
    if not reduce_first:
        body.append(_all_reduce("%result", "%made", result, kind))
    text = "\n    ".join(body)
    return (f"module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{\n"
            f"  func.func @main() -> tensor<1x{result}> {{\n    {text}\n    return %result : tensor<1x{result}>\n"
            f"  }}\n}}\n")


def _all_reduce(result: str, operand: str, element: str, kind: str) -> str:
    scalar, tensor = f"tensor<{element}>", f"tensor<1x{element}>"
    return (f'{result} = "stablehlo.all_reduce"({operand}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, '
            f"type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}}> ({{\n"
            f"    ^bb0(%p: {scalar}, %q: {scalar}):\n      %both = stablehlo.{_REDUCERS[kind]} %p, %q : {scalar}\n"
            f"      stablehlo.return %both : {scalar}\n    }}) : ({tensor}) -> {tensor}")


def _element(model: Sequence[tuple[str, str]], name: str, element: str) -> str | None:
    """An element as MLIR writes it; what the model leaves open is one."""
    values: Mapping[str, str] = dict(model)
    if sort_of(element) == "complex":
        parts = [_real(values.get(f"{name}.{part}", "1")) for part in ("re", "im")]
        return None if None in parts else f"({parts[0]}, {parts[1]})"
    text = values.get(name, "1")
    if sort_of(element) == "truth":
        return {"True": "true", "False": "false"}.get(text, "true")
    if sort_of(element) == "float":
        return _real(text)
    if not text.isdigit():
        return None
    number, bits = int(text), int(element.lstrip("ui"))
    return str(number if element.startswith("u") or number < 2**(bits - 1) else number - 2**bits)


def _real(text: str) -> str | None:
    try:
        return repr(float(Fraction(text)))
    except (ValueError, OverflowError):
        return None


if __name__ == "__main__":
    end_with_parent()
    load_natives(sys.argv[3:])
    print(json.dumps(search(sys.argv[1], sys.argv[2])))
