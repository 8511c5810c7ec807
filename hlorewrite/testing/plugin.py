"""The pytest plug-in: golden files are tests, and ``rewrite`` runs passes or rules on a module and compares values."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.errors import UsageError
from hlorewrite.ir import Module, parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.testing.golden import SKIPPED_FOLDERS, SUFFIXES, failure, run_lines


class GoldenFailure(Exception):
    """A RUN line failed; the text is the line and what it printed."""


class GoldenFile(pytest.File):
    """A file with RUN lines; each file is one test."""

    def collect(self) -> Iterator[pytest.Item]:
        """The test of the file."""
        yield GoldenTest.from_parent(self, name="RUN")


class GoldenTest(pytest.Item):
    """Runs the RUN lines of a file in this process."""

    def runtest(self) -> None:
        """Fails if a RUN line fails."""
        factory: pytest.TempPathFactory = self.config._tmp_path_factory  # pyright: ignore
        said = failure(self.path, factory.mktemp("golden"))
        if said:
            raise GoldenFailure(said)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The line and what it printed, without a traceback."""
        if isinstance(excinfo.value, GoldenFailure | UsageError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo, style))

    def reportinfo(self) -> tuple[Path, int, str]:
        """How pytest names the test."""
        return self.path, 0, self.path.name


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collects golden files: those that lit would take, with a RUN line."""
    if file_path.suffix not in SUFFIXES or set(file_path.parts) & set(SKIPPED_FOLDERS):
        return None
    if not run_lines(file_path, file_path.parent):
        return None
    return GoldenFile.from_parent(parent, path=file_path)


@dataclass(frozen=True)
class RewrittenModule:
    """A module before and after passes.

    Attributes:
      before: the original.
      after: what the passes made of it.
      changed: whether a pass says that it changed something.
      remarks: what the passes reported, each ``KIND: NAME: SENTENCE``.
    """

    before: Module
    after: Module
    changed: bool
    remarks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The module afterwards, as MLIR text."""
        return self.after.text()

    def assert_same_values(self, seeds: Sequence[int] = (0, 1)) -> None:
        """Executes both modules on all their devices with the oracle, and compares every output.

        Args:
          seeds: the seeds of the random inputs.

        Raises:
          AssertionError: an output differs by more than rounding explains; the text is the table of outputs.
          CannotExecute: something in the module cannot be executed.
        """
        for seed in seeds:
            compared = check(self.before, self.after, seed=seed)
            assert compared.equal, f"seed {seed}:\n{compared.table()}{''.join(compared.problems)}"


@pytest.fixture
def rewrite() -> Callable[..., RewrittenModule]:
    """A function that runs passes or rules on a module: ``rewrite(text, passes="my-pass", load="my_pass.py")``."""
    return run_on


def run_on(module: str | Path, *, passes: str = "", rules: str | Path = "", load: str | Path | Sequence[str | Path] = ()
           ) -> RewrittenModule:
    """Runs passes or rules on a module.

    Args:
      module: MLIR text, or the path of a file.
      passes: a pipeline, as ``--pass`` takes it.
      rules: a rule file to apply, after the passes.
      load: Python files with passes or natives of yours.

    Returns:
      The module before and after.

    Raises:
      HlorewriteError: a file or the pipeline is wrong, or a pass fails.

    Example:
      >>> made = run_on("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }", passes="cse")
      >>> made.changed, made.remarks
      (False, ())
    """
    from hlorewrite.passmanager.load_file import load_files
    from hlorewrite.passmanager.options import quoted
    from hlorewrite.passmanager.reports import RemarkSink

    load_files([str(each) for each in ([load] if isinstance(load, str | Path) else load)])
    given = parse(module.read_bytes(), name=str(module)) if isinstance(module, Path) else parse(module, name="module")
    after, sink = given.clone(), RemarkSink()
    pipeline = ",".join([*([passes] if passes else []), *([f"rules{{files={quoted(str(rules))}}}"] if rules else [])])
    changed = run_passes(after, parse_pipeline(pipeline), PassContext((sink,), compare=True))
    remarks = tuple(f"{each.kind}: {each.rule}: {each.sentence}" for each in sink.remarks)
    return RewrittenModule(given, after, changed, remarks)
