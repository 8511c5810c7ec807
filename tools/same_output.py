"""Whether two versions of hlorewrite write the same: modules, remarks, plans and reports, compared byte for byte.

Usage: ``python tools/same_output.py`` compares this tree with the digests kept in ``tests/same_output.txt`` and exits 1
where a line differs; ``--write`` keeps new digests. ``--against REV`` runs both this tree and that commit here and
prints what differs as text, so it needs no digests and works with any jaxlib. ``NAME...`` limits all of these to
subjects whose name contains one of the words; ``--show`` prints their output.

A subject is one module: each part of each ``.mlir`` file below ``tests/``, and the steps of ``bench/`` and
``examples/`` as JAX lowers them. It compares:

* ``comm``, ``time``: the module, remarks and plan of each named pipeline;
* ``run``: what the commands in the file's own ``RUN`` lines print;
* ``report``: ``hlorewrite report --json`` on H200s.

A change that means to keep behaviour leaves every line as it is. A change of a decision shows up here: write the
digests again, and say in the commit why each line changed.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import gc
import hashlib
import importlib.metadata
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tests" / "same_output.txt"
CLUSTER = "h200"
PIPELINES = {"comm": ("-O", "comm"), "time": ("-O", "time", "--memory-budget", "1GiB")}
WORKERS = 2
MOST_LINES = 200
"""How many lines of one difference are printed."""
_SEPARATOR = re.compile(r"^// -----.*$", re.MULTILINE)
_RUN = re.compile(r"^\s*//\s*RUN:\s*(.*?)\s*(\\?)$", re.MULTILINE)
_UNSAID = re.compile(r'("(?:hlorewrite|jaxlib|jax|library|checksum)": )"[^"]*"|v?\d+\.\d+\.\d+(?:\.dev\d+)?')
"""Versions, and what in a plan is a digest of this library or of the file itself."""
_LONG = re.compile(r"-?\d+\.\d{9,}(?:e[+-]?\d+)?")
_DIGITS = 7
"""Of a number in full. The last digits of logarithms depend on the vector instructions of the processor."""


@dataclass(frozen=True)
class ComparedModule:
    """One module.

    Attributes:
      name: the file below the root and its part, or the script and the step.
      text: what is read.
      commands: the commands of its RUN lines, ``%s`` for the module.
      alone: whether the text is one module; else it is several with lines ``// -----`` between them.
    """

    name: str
    text: str
    commands: tuple[tuple[str, ...], ...] = ()
    alone: bool = True


def golden_subjects() -> Iterator[ComparedModule]:
    """Each part of each module below ``tests/``."""
    for file in sorted((ROOT / "tests").rglob("*.mlir")):
        if "Output" in file.parts:
            continue
        text = file.read_text(encoding="utf-8")
        name = file.relative_to(ROOT).as_posix()
        parts = _SEPARATOR.split(text)
        yield ComparedModule(name, text, tuple(run_lines(text)), alone=len(parts) == 1)
        if len(parts) > 1:
            yield from (ComparedModule(f"{name}:{number}", part) for number, part in enumerate(parts, 1))


def run_lines(text: str) -> Iterator[tuple[str, ...]]:
    """The words of each ``hlorewrite`` command that a golden file runs on itself alone, up to the first pipe.

    ``--verify-diagnostics`` is dropped, because it prints nothing if all is as expected.

    Example:
      >>> list(run_lines("// RUN: %hlorewrite opt %s --pass=inline | %filecheck %s"))
      [('opt', '%s', '--pass=inline')]
    """
    joined = "".join(match[1] + (" " if match[2] else "\n") for match in _RUN.finditer(text))
    for line in joined.splitlines():
        words = shlex.split(re.split(r"[|;<>]|&&|2>", line)[0])
        words = words[words[:1] == ["not"]:]
        others = any("%" in word.replace("%s", "") for word in words[1:])
        if words[:1] == ["%hlorewrite"] and "%s" in words and not others:
            yield tuple(word for word in words[1:] if word != "--verify-diagnostics")


def step_subjects() -> Iterator[ComparedModule]:
    """Train steps of ``examples/`` and ``bench/``, as this JAX lowers them."""
    sys.path += [str(ROOT / folder) for folder in ("examples", "bench/common", "bench/passes", "bench/overhead")]
    from lowered_steps import lowered_steps

    from hlorewrite.ir.load import parse
    for name, lower in lowered_steps().items():
        yield ComparedModule(f"step: {name}", parse(lower(), name="step").text())


# ---- what one subject gives


def outputs_of(subject: ComparedModule) -> dict[str, str]:
    """Surface -> everything that its commands write for a module: exit code, output, errors, the plan file."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        file = folder / "in.mlir"
        file.write_text(subject.text, encoding="utf-8")
        if not subject.alone:
            return {"run": _run(folder, subject.commands)}
        first = ("--pass=expose-collectives",) if subject.name.startswith("step: ") else ()
        options = ("--topology", CLUSTER, "--remarks=all", "--plan", str(folder / "run.plan"))
        found = {name: _command(folder, ["opt", str(file), *first, *words, *options])
                 for name, words in PIPELINES.items()}
        found["report"] = _command(folder, ["report", str(file), "--json", "--topology", CLUSTER])
        if subject.commands:
            found["run"] = _run(folder, subject.commands)
        return found


def _run(folder: Path, commands: Sequence[Sequence[str]]) -> str:
    file = str(folder / "in.mlir")
    return "\n".join(_command(folder, [word.replace("%s", file) for word in words]) for words in commands)


def _command(folder: Path, words: Sequence[str]) -> str:
    """What one command line writes, run in this process in a folder of its own."""
    from hlorewrite.cli.main import guarded
    for plan in folder.glob("*.plan"):
        plan.unlink()
    out, err, here = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = guarded(words)
    finally:
        os.chdir(here)
    out.seek(0)
    plans = "".join(plan.read_text(encoding="utf-8") for plan in sorted(folder.glob("*.plan")))
    written = "\n".join((f"exit {code}", out.read(), err.getvalue(), plans))
    said = _UNSAID.sub(lambda found: f"{found[1] or ''}VERSION", written.replace(str(folder), "FOLDER"))
    return _LONG.sub(lambda found: f"{float(found[0]):.{_DIGITS}g}", said)


def _digests(subject: ComparedModule) -> tuple[str, dict[str, str]]:
    """The name of a subject, and a digest for each surface."""
    made = {surface: hashlib.sha256(text.encode()).hexdigest()[:10] for surface, text in outputs_of(subject).items()}
    gc.collect()
    return subject.name, made


# ---- all of them


def subjects(words: Sequence[str]) -> list[ComparedModule]:
    """All subjects, or those whose name contains one of some words."""
    found = [*golden_subjects(), *step_subjects()]
    return [subject for subject in found if not words or any(word in subject.name for word in words)]


def digests(words: Sequence[str]) -> dict[str, str]:
    """``NAME SURFACE`` -> digest, computed in a few processes."""
    chosen = subjects(words)
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        return {f"{name} {surface}": digest for name, made in pool.map(_digests, chosen, chunksize=8)
                for surface, digest in made.items()}


def read_kept(text: str) -> tuple[str, dict[str, str]]:
    """The release of jaxlib that digests were made with, and the digests.

    Example:
      >>> read_kept("# jaxlib 0.10.2\\na.mlir comm 0123456789\\n")
      ('0.10.2', {'a.mlir comm': '0123456789'})
    """
    first, *lines = text.splitlines()
    return first.split()[-1], dict(line.rsplit(" ", 1) for line in lines if line)


def compared(kept: dict[str, str], now: dict[str, str]) -> list[str]:
    """One line for each difference between two sets of digests."""
    return [f"{name}: {'is new' if name not in kept else 'is gone' if name not in now else 'differs'}"
            for name in sorted(kept.keys() | now.keys()) if kept.get(name) != now.get(name)]


def _outputs_json(words: Sequence[str]) -> str:
    return json.dumps({f"{subject.name} {surface}": text for subject in subjects(words)
                       for surface, text in outputs_of(subject).items()})


def against(revision: str, words: Sequence[str]) -> int:
    """Prints what this tree writes otherwise than a commit; 1 if there is something."""
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), revision], cwd=ROOT, check=True)
        try:
            before, after = (_outputs_in(root, words) for root in (tree, ROOT))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    different = [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
    for name in different:
        lines = list(difflib.unified_diff(before.get(name, "").splitlines(), after.get(name, "").splitlines(),
                                          f"{revision} {name}", name, n=1, lineterm=""))
        print("\n".join(lines[:MOST_LINES]))
    print(f"{len(different)} of {len(after)} outputs differ from {revision}")
    return 1 if different else 0


def _outputs_in(root: Path, words: Sequence[str]) -> dict[str, str]:
    """What the package below another root writes for the subjects of this one."""
    command = [sys.executable, str(Path(__file__).resolve()), "--outputs", *words]
    done = subprocess.run(command, env=dict(os.environ, PYTHONPATH=str(root)), check=True, stdout=subprocess.PIPE,
                          text=True)
    return json.loads(done.stdout)


def main(words: Sequence[str] | None = None) -> int:
    """Compares, writes or shows; the module's docstring says which."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only subjects whose name contains one of these words")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help=f"keep the digests in {KEPT.relative_to(ROOT)}")
    action.add_argument("--against", metavar="REV", help="print what differs from this commit, as text")
    action.add_argument("--show", action="store_true", help="print what is compared")
    action.add_argument("--outputs", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.outputs:
        print(_outputs_json(args.names))
        return 0
    if args.show:
        for name, text in json.loads(_outputs_json(args.names)).items():
            print(f"==== {name}\n{text}")
        return 0
    if args.against:
        return against(args.against, args.names)
    jaxlib, now = importlib.metadata.version("jaxlib"), digests(args.names)
    if args.write:
        KEPT.write_text("".join([f"# jaxlib {jaxlib}\n", *(f"{name} {digest}\n" for name, digest in now.items())]),
                        encoding="utf-8")
        return 0
    of, kept = read_kept(KEPT.read_text(encoding="utf-8"))
    if of != jaxlib:
        print(f"the digests are of jaxlib {of}, and {jaxlib} prints otherwise: use --against", file=sys.stderr)
        return 2
    if args.names:
        kept = {name: digest for name, digest in kept.items() if any(word in name for word in args.names)}
    differences = compared(kept, now)
    print("\n".join([*differences, f"{len(differences)} of {len(now)} outputs differ"]))
    return 1 if differences else 0


if __name__ == "__main__":
    os.environ.update(JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="8", TF_CPP_MIN_LOG_LEVEL="3")
    sys.exit(main())
