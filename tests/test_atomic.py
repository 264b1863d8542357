"""Files are replaced whole or not at all, and keep what belongs to them."""

import os
import stat

import pytest

from kernling.atomic import STALE, replaced


def write(path, text):
    with replaced(path) as temporary:
        temporary.write_text(text)


def test_a_new_file_has_the_usual_mode(tmp_path):
    write(tmp_path / "a.txt", "new")
    (tmp_path / "b.txt").write_text("plain")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode


def test_a_file_that_is_there_keeps_its_mode_and_owner(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
    before = path.stat()
    write(path, "new")
    after = path.stat()
    assert path.read_text() == "new"
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (0o640, before.st_uid, before.st_gid)


def test_symbolic_links_are_followed(tmp_path):
    real = tmp_path / "real.txt"
    real.write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to(real)
    write(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with replaced(path) as temporary:
            temporary.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_folders_and_devices_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write(tmp_path, "x")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="device or a pipe"):
        write(pipe, "x")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_temporary_files_of_crashes_are_removed(tmp_path):
    old, busy, other = (tmp_path / f".{name}.0123.tmp" for name in ("a[1].txt", "a[1].txt.x", "a1.txt"))
    for path in (old, busy, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (path.stat().st_mtime - 2 * STALE,) * 2)
    write(tmp_path / "a[1].txt", "new")
    assert not old.exists(), "nobody has written to it for hours"
    assert busy.exists(), "somebody may be writing to it"
    assert other.exists(), "it belongs to another file"
