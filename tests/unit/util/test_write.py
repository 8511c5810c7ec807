"""The one writer of result files."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from hlorewrite.errors import OutputError
from hlorewrite.util.write import write_file, write_output


def in_child(program: str, **options) -> subprocess.CompletedProcess[bytes]:
    """Runs a program that imports the writer."""
    imports = "import os, sys\nfrom hlorewrite.util.write import write_file, write_output\n"
    return subprocess.run([sys.executable, "-c", imports + program], check=True, **options)


def mode_of(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    """Both as text and as a path."""
    target = tmp_path / "out.mlir"
    write_file(str(target), b"one")
    write_file(target, b"two")
    assert target.read_bytes() == b"two" and list(tmp_path.iterdir()) == [target]


def test_a_path_without_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is in the current one."""
    monkeypatch.chdir(tmp_path)
    write_file("out.mlir", b"one")
    assert (tmp_path / "out.mlir").read_bytes() == b"one"


NOBODY = 65534


@pytest.mark.parametrize("place", ["no/out.mlir", "folder", "file/out.mlir", "a/", "loop", "x" * 300])
def test_places_that_cannot_be_written(place: str, tmp_path: Path) -> None:
    """No folder, a folder, a file as folder, no name, a circle of links, too long a name."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OutputError) as caught:
        write_file(f"{tmp_path}/{place}", b"new")
    assert str(caught.value).count("\n") == 0 and "cannot be written (" in str(caught.value)
    assert caught.value.location == f"{tmp_path}/{place}"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder", "loop"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_folder_that_is_read_only(tmp_path: Path) -> None:
    """The old file stays. Root writes everywhere, so it becomes another user for a moment, in a folder of that user."""
    user = os.geteuid()
    folder = Path(tempfile.mkdtemp()) if user == 0 else tmp_path
    target = folder / "out.mlir"
    target.write_bytes(b"old")
    folder.chmod(0o555)
    try:
        if user == 0:
            os.chown(folder, NOBODY, -1)
            os.seteuid(NOBODY)
        with pytest.raises(OutputError, match="Permission denied"):
            write_file(target, b"new")
        assert target.read_bytes() == b"old" and list(folder.iterdir()) == [target]
    finally:
        os.seteuid(user)
        folder.chmod(0o755)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk."""
    target = tmp_path / "out.mlir"
    target.write_bytes(b"old")
    program = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_file(path, bytes(100_000))
except Exception as error:
    print(type(error).__name__, error, end="")
"""
    output = in_child(f"path = {str(target)!r}" + program, stdout=subprocess.PIPE).stdout.decode()
    assert output == (f"OutputError {target}: cannot be written (File too large); "
                      "free space there, or name a file elsewhere")
    assert target.read_bytes() == b"old" and list(tmp_path.iterdir()) == [target]


def test_an_interruption_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Just before the file would get its name."""
    def interrupted(source: str, target: str) -> None:
        assert Path(source).parent == tmp_path and Path(source).read_bytes() == b"new"
        raise KeyboardInterrupt
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "out.mlir", b"new")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("link", ["real/out.mlir", "{folder}/real/out.mlir", "second"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_is_followed(link: str, exists: bool, tmp_path: Path) -> None:
    """Relative, absolute, over a second link; also to a file that does not exist yet."""
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "out.mlir"
    if exists:
        real.write_bytes(b"old")
        real.chmod(0o640)
    (tmp_path / "second").symlink_to("real/out.mlir")
    (tmp_path / "link").symlink_to(link.format(folder=tmp_path))
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "second").is_symlink()
    assert real.read_bytes() == b"new" and not real.is_symlink() and list(real.parent.iterdir()) == [real]
    assert not exists or mode_of(real) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o666, 0o444])
def test_an_existing_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    """Also bits that the umask takes from new files."""
    target = tmp_path / "out.mlir"
    target.write_bytes(b"old")
    target.chmod(mode)
    in_child(f"os.umask(0o077); write_file({str(target)!r}, b'new')")
    assert mode_of(target) == mode and target.read_bytes() == b"new"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0, 0o666)])
def test_a_new_file_gets_what_the_umask_allows(umask: int, mode: int, tmp_path: Path) -> None:
    """And the umask stays as it is."""
    target = tmp_path / "out.mlir"
    in_child(f"os.umask({umask}); write_file({str(target)!r}, b'new'); assert os.umask(0) == {umask}")
    assert mode_of(target) == mode


def test_a_fifo_is_written_in_place(tmp_path: Path) -> None:
    """Its reader gets the bytes."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"new")
    reader.join()
    assert read == [b"new"] and stat.S_ISFIFO(pipe.stat().st_mode) and list(tmp_path.iterdir()) == [pipe]


def test_devices_are_written_in_place(tmp_path: Path) -> None:
    """``/dev/null`` takes everything, ``/dev/full`` nothing."""
    (tmp_path / "link").symlink_to("/dev/null")
    write_file("/dev/null", b"new")
    write_file(tmp_path / "link", b"new")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode) and (tmp_path / "link").is_symlink()
    with pytest.raises(OutputError, match="No space left"):
        write_file("/dev/full", b"new")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "{folder}/link"])
def test_standard_output_by_name(name: str, tmp_path: Path) -> None:
    """Redirected to a file: what was printed before stays, and what follows comes after."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    program = f"print('before'); write_file({name.format(folder=tmp_path)!r}, b'new\\n'); print('after')"
    with open(tmp_path / "out", "wb") as out:
        in_child(program, stdout=out)
    assert (tmp_path / "out").read_bytes() == b"before\nnew\nafter\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "out"]
    assert in_child(program, stdout=subprocess.PIPE).stdout == b"before\nnew\nafter\n"


def test_a_dash_is_standard_output_where_a_command_says_so(tmp_path: Path) -> None:
    """And a file name elsewhere."""
    program = "write_output('-', b'one'); write_output('out', b'two'); write_file('-', b'three')"
    assert in_child(program, cwd=tmp_path, stdout=subprocess.PIPE).stdout == b"one"
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"out": b"two", "-": b"three"}


def test_the_output_of_a_command(tmp_path: Path) -> None:
    """Names the place as the user wrote it."""
    with pytest.raises(OutputError, match="cannot be written"):
        write_output(str(tmp_path / "no" / "out.mlir"), b"three")
