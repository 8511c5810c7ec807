"""What all tests share: devices, random-test profiles, the switch for slow cases, the order among workers."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from heavy import is_heavy
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

collect_ignore_glob = ["*_worker.py", "lit/*"]  # programs that tests start, not tests
if not sorted(Path("/dev").glob("nvidia[0-9]*")):
    collect_ignore_glob.append("gpu/*")  # needs an NVIDIA GPU

TESTS = Path(__file__).resolve().parent
LONGEST = ("test_site.py", "test_partition_programs.py", "test_pages.py", "test_demo.py", "test_reshard_jax.py",
           "test_examples.py", "test_fused_forms.py", "test_driver_processes.py",
           "test_split_stages_random.py", "test_pipeline.py", "test_optimize.py", "test_processes.py", "test_lit.py")
"""Files whose tests workers start with, so that none waits for a long one at the end."""
APART = ("test_pages.py", "test_demo.py", "test_reshard_jax.py", "test_examples.py", "test_partition_programs.py")
"""Files of long tests that share nothing but by their parameter: each goes to whichever worker is free."""

EXACT, ROUNDED = ("oracle/", "unit/passes/", "unit/rules/"), ("oracle/test_rounding.py",)
"""Tests whose random inputs are drawn so that sums of them are exact; but for those of rounding itself."""

MOST_KEPT = 1 << 28
"""Bytes of compiled programs above which they are compiled again."""

# Eight CPU devices, and code that is quickly made rather than quickly run: tests run everything once. Set before JAX
# looks for devices. LLVM's optimisation level changes neither XLA's own passes nor which collectives a program has.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
for name, value in (("xla_force_host_platform_device_count", 8), ("xla_backend_optimization_level", 0)):
    if name not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --{name}={value}".strip()

gc.set_threshold(200_000, 20, 50)  # to look for circles takes up to a third of the time

# Byte code is kept, for the workers and for each program that tests start: without it each compiles all sources again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("default", max_examples=50, deadline=None, derandomize=True,
                          suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Hypothesis also draws constants that it reads in the source of all loaded modules: seconds for each worker in a fresh
# clone. `make nightly` does it.
if "HYPOTHESIS_PROFILE" not in os.environ and hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--run-slow`` and ``--run-heavy``."""
    parser.addoption("--run-slow", action="store_true", help="also run tests marked slow, and those marked heavy")
    parser.addoption("--run-heavy", action="store_true", help="also run tests marked heavy (tests/heavy.py)")


def pytest_configure(config: pytest.Config) -> None:
    """Declares the markers; gives the workers, and what they start, one cache of compiled programs.

    It is kept for the next run: JAX names an entry by the program, the flags and the version of XLA.
    """
    config.addinivalue_line("markers", "slow: takes minutes; runs with --run-slow")
    config.addinivalue_line("markers", "heavy: listed in tests/heavy.py; runs with --run-heavy or --run-slow")
    if not hasattr(config, "workerinput") and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        os.environ.update(JAX_COMPILATION_CACHE_DIR=str(_kept_folder(config)),
                          JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
                          JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
                          JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES="none")


def _kept_folder(config: pytest.Config) -> Path:
    """The cache of compiled programs of this checkout; begun anew where it has grown large."""
    cache = getattr(config, "cache", None)
    if cache is None:  # -p no:cacheprovider
        folder = tempfile.mkdtemp(prefix="hlorewrite-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        return Path(folder)
    folder = Path(cache.mkdir("xla"))
    if sum(path.stat().st_size for path in folder.iterdir()) > MOST_KEPT:
        shutil.rmtree(folder)
        folder.mkdir()
    return folder


def pytest_sessionstart(session: pytest.Session) -> None:
    """Has workers report what is shown."""
    if hasattr(session.config, "workerinput"):
        from scheduling import report_less
        report_less(session.config)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Leaves out the search for doctests in files of tests, which hold none."""
    found = yield
    tests = file_path.name.startswith("test_") and ">>>" not in file_path.read_text(encoding="utf-8")
    return [each for each in found if not (tests and type(each).__name__ == "DoctestModule")]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Looks for circles no longer among what collection made."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before -m selects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects slow and heavy tests unless they were asked for; with workers the longest start first."""
    slow = config.getoption("--run-slow")
    left_out = [] if slow else ["slow"] if config.getoption("--run-heavy") else ["slow", "heavy"]
    kept: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    below_tests = {path: path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""
                   for path in {item.path for item in items}}
    for item in items:
        if is_heavy(below_tests[item.path], item.name):
            item.add_marker("heavy")
        (deselected if any(map(item.get_closest_marker, left_out)) else kept).append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = kept
    if hasattr(config, "workerinput"):
        order = {name: at for at, name in enumerate(LONGEST)}
        items.sort(key=lambda item: order.get(item.path.name, len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadscope``: what goes to one worker together."""
    from scheduling import GroupScheduling
    return GroupScheduling(config, log, together) if config.getvalue("dist") == "loadscope" else None


def together(nodeid: str) -> str:
    """The name of the group of tests that share what one of them made, and go to one worker.

    A group is a file; where the parameters of a test share nothing, a parameter; golden files, a folder.
    """
    file, _, test = nodeid.partition("::")
    name = file.rpartition("/")[2]
    parameter = test.partition("[")[2].removesuffix("]")
    if name == "test_lit.py":
        return f"{file} {parameter.rpartition('/')[0]}"
    return f"{file} {parameter or test}" if name in APART else file


@pytest.fixture(scope="module", autouse=True)
def inputs_with_exact_sums(request: pytest.FixtureRequest) -> Iterator[None]:
    """In the tests of ``EXACT``, random floats are odd multiples of an eighth.

    Sums of such numbers, and of products of a few of them, are the same in any order. Most outputs are then equal bit
    by bit, and no bound of their rounding has to be computed, which took longer than executing both programs.
    """
    file = request.path.relative_to(TESTS).as_posix() if request.path.is_relative_to(TESTS) else ""
    if not file.startswith(EXACT) or file in ROUNDED:
        yield
        return
    from hlorewrite.checks.reference import inputs

    drawn = inputs.random_array

    def on_grid(type_: Any, generator: Any, role: Any = "") -> Any:
        return of_eighths(drawn(type_, generator, role))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "random_array", on_grid)
        yield


def of_eighths(x: Any) -> Any:
    """An array with each float moved to the middle of the quarter that it lies in; never zero. Integers stay.

    Example:
      >>> import numpy as np
      >>> of_eighths(np.array([0.01, -0.01, 1.3, 2.0])).tolist()
      [0.125, -0.125, 1.375, 2.125]
    """
    if x.dtype.kind in "biu" or x.dtype.name.startswith(("int", "uint")):
        return x
    if x.dtype.kind == "c":
        return (of_eighths(x.real) + 1j * of_eighths(x.imag)).astype(x.dtype)
    import numpy as np
    return ((np.floor(x.astype(np.float64) * 4) + 0.5) / 4).astype(x.dtype)


@pytest.fixture
def oracle_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """``--check=interp`` executes in the process of the tests; a command of users starts one, which a crash may end."""
    from hlorewrite.checks.reference import worker
    from hlorewrite.checks.reference.check import check
    monkeypatch.setattr(worker, "check_in_subprocess", check)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; skips where there is none."""
    from browser import missing, open_browser
    if why := missing():
        pytest.skip(why)
    with open_browser() as opened:
        yield opened
