"""Values that StableHLO's interpreter tests state, against what the reference execution computes."""

import re
from typing import Any

import numpy as np

_CONST = re.compile(r"check\.expect_(eq|almost_eq)_const\s+(%[\w#]+),\s*(dense<.*?>)\s*(?:,[^:]*|\{[^}]*\})?:\s*"
                    r"(tensor<(?:[^<>]|<[^<>]*>)*>)[^\n]*", re.DOTALL)
_OTHER_RUN = re.compile(r"^// RUN-DISABLED|^// RUN:.*(?:complex-math-expander|chlo-legalize|--chlo|ulp)|_ulp|tolerance",
                        re.MULTILINE)
_PAIR = re.compile(r'"?stablehlo\.custom_call"?\s*@check\.(?:expect_)?(\w+)\((%[\w#]+),\s*(%[\w#]+)\)[^:]*:\s*'
                   r"\((tensor<(?:[^<>]|<[^<>]*>)*>),[^\n]*")
_ANY_CHECK = re.compile(r"^\s*check\.\w+[^\n]*$", re.MULTILINE)
_CLOSE = re.compile(r"check\.expect_close\s+(%[\w#]+),\s*(%[\w#]+)[^:]*:\s*(tensor<(?:[^<>]|<[^<>]*>)*>)[^\n]*")
_PARALLEL = re.compile(r'(%\w+)(?::\d+)?\s*=\s*"interpreter\.run_parallel"\(([^)]*)\)\s*\{\s*'
                       r"programs\s*=\s*\[(.*?)\]\s*\}\s*:\s*\(([^)]*)\)\s*->\s*(\([^)]*\)|\S+)", re.DOTALL)
_FUNCTION = re.compile(r"func\.func\s+(?:public\s+|private\s+)?@([\w.]+)\(\)[^\n]*\{\n(.*?)\n"
                       r"\s*(?:func\.)?return\b[^\n]*",
                       re.DOTALL)


def without_checks(text: str) -> str:
    """A test without the ops of the ``check`` dialect, which jaxlib does not have.

    Args:
      text: the module.
    """
    return _ANY_CHECK.sub("", _CLOSE.sub("", _CONST.sub("", text)))


def written_values(text: str) -> tuple[str, str]:
    """Runs every function of a test without arguments, and compares what it checks.

    Args:
      text: the module, whose ``check`` ops state values.

    Returns:
      ``ok``, ``refused`` or ``wrong``, and a sentence.
    """
    from hlorewrite.errors import HlorewriteError
    if _OTHER_RUN.search(text):
        return "refused", "the suite does not run this test itself, or after a pass, or within a tolerance of its own"
    try:
        checked = sum(_run_function(text, found) for found in _FUNCTION.finditer(text))
    except _Differs as error:
        return "wrong", str(error)
    except HlorewriteError as error:
        return "refused", error.what
    return ("ok", "") if checked else ("refused", "no value that can be compared is stated")


class _Differs(Exception):
    """A value is not the one that the test states."""


def _run_function(text: str, found: re.Match[str]) -> int:
    body = found[2]
    if "check." not in body:
        return 0
    parallel = _PARALLEL.search(body)
    if parallel:
        return _run_parallel(text, found, parallel)
    checks, kept = _checks_of(body)
    if not checks:
        return 0
    returned = ", ".join(value for _, values, _ in checks for value in values)
    types = ", ".join(kind for _, values, kind in checks for _ in values)
    main = f"func.func @main() -> ({types}) {{{kept}\n  return {returned} : {types}"
    outputs = _execute(text[:found.start()] + main + text[found.end():])[0]
    return _compare(checks, list(outputs))


def _run_parallel(text: str, found: re.Match[str], call: re.Match[str]) -> int:
    """A test that runs a function on a grid of processes, each with its own inputs."""
    from hlorewrite.checks.reference.program import prepare
    from hlorewrite.ir.load import parse

    rows = [re.findall(r"@(\w+)", row) for row in re.findall(r"\[([^\[\]]*)\]", call[3])]
    names = {name for row in rows for name in row}
    if len(names) != 1:
        return 0
    inputs = _constants(found[2], [value.strip() for value in call[2].split(",") if value.strip()],
                        [kind.strip() for kind in _split(call[4])])
    others = text[:found.start()] + text[found.end():].lstrip().removeprefix("}")
    module = parse(_with_grid(others, len(rows), len(rows[0])))
    program = prepare(module, next(iter(names)), per_device=True)
    size, each = program.processes, len(program.input_types)
    if size != len(rows) * len(rows[0]):
        return 0
    made = program.run([inputs[process * each:(process + 1) * each] for process in range(size)])
    results = [value for row in made.outputs for value in row]
    count = 0
    for check in _CONST.finditer(found[2]):
        name, _, place = check[2].partition("#")
        if name == call[1]:
            stated = _execute(f"func.func @main() -> {check[4]} {{\n  %0 = stablehlo.constant {check[3]} : {check[4]}\n"
                              f"  return %0 : {check[4]}\n}}")[0][0]
            count += _compare([(check[1], [check[2], "what is stated"], check[4])], [results[int(place or 0)], stated])
    return count


def _with_grid(text: str, replicas: int, partitions: int) -> str:
    stated = f"mhlo.num_replicas = {replicas} : i32, mhlo.num_partitions = {partitions} : i32"
    return re.sub(r"^(\s*module(?:\s+@[\w.]+)?)\s*(?:attributes\s*\{[^}]*\})?\s*\{",
                  rf"\1 attributes {{{stated}}} {{", text, count=1, flags=re.MULTILINE) \
        if re.search(r"^\s*module\b", text, re.MULTILINE) else f"module attributes {{{stated}}} {{\n{text}\n}}"


def _constants(body: str, names: list[str], kinds: list[str]) -> list[Any]:
    """The values of the constants of a body, computed by the reference execution."""
    lines = [line for line in body.splitlines() if "stablehlo.constant" in line]
    types = ", ".join(kinds)
    text = "\n".join(lines)
    return list(_execute(f"func.func @main() -> ({types}) {{\n{text}\n  return {', '.join(names)} : {types}\n}}")[0])


def _split(types: str) -> list[str]:
    return re.findall(r"tensor<(?:[^<>]|<[^<>]*>)*>|![\w.]+", types)


def _checks_of(body: str) -> tuple[list[tuple[str, list[str], str]], str]:
    """(kind, values to compare, their type) of each check of a body, and the body without them."""
    checks: list[tuple[str, list[str], str]] = []
    added = 0

    def constant(found: re.Match[str]) -> str:
        nonlocal added
        added += 1
        checks.append((found[1], [found[2], f"%stated{added}"], found[4]))
        return f"%stated{added} = stablehlo.constant {found[3]} : {found[4]}"

    def pair(found: re.Match[str]) -> str:
        checks.append((found[1], [found[2], found[3]], found[4]))
        return ""

    def close(found: re.Match[str]) -> str:
        checks.append(("close", [found[1], found[2]], found[3]))
        return ""

    return checks, _CLOSE.sub(close, _PAIR.sub(pair, _CONST.sub(constant, body)))


def _execute(text: str) -> tuple[tuple[Any, ...], ...]:
    from hlorewrite.checks.reference.program import prepare
    from hlorewrite.ir.load import parse
    return prepare(parse(text), "main").run([[]]).outputs


_TOLERANCE = {"eq": 0.0, "almost_eq": 1e-3, "close": 2e-2}


def _compare(checks: list[tuple[str, list[str], str]], outputs: list[Any]) -> int:
    position = 0
    for how, values, _ in checks:
        made = outputs[position:position + len(values)]
        position += len(values)
        if len(made) < 2:
            continue
        left, right = (np.asarray(each) for each in made)
        if left.dtype.kind not in "biufc":
            left, right = left.astype(np.float64), right.astype(np.float64)
        wide = np.complex128 if left.dtype.kind == "c" else np.float64
        exact = how == "eq" or left.dtype.kind in "biu"
        equal = np.array_equal(left, right, equal_nan=left.dtype.kind in "fc") if exact else np.allclose(
            left.astype(wide), right.astype(wide), rtol=_TOLERANCE.get(how, 1e-3), atol=_TOLERANCE.get(how, 1e-3),
            equal_nan=True)
        if not equal:
            raise _Differs(f"{values[0]} is {left.tolist()!r:.80} where {right.tolist()!r:.80} is stated")
    return len(checks)
