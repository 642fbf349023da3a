"""Ways in which the folder of a memory cannot be written, each of which can be undone."""

import errno
import os
import shutil
from contextlib import contextmanager

import pytest


def _refuse(number):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    return refuse


@contextmanager
def gone(root):
    aside = root.with_name("aside")
    root.rename(aside)
    yield
    aside.rename(root)


@contextmanager
def replaced_by_a_file(root):
    with gone(root):
        root.write_text("not a folder")
        yield
        root.unlink()


@contextmanager
def read_only(_root):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
        patch.setattr(os, "write", _refuse(errno.EROFS))
        yield


@contextmanager
def full(_root):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", _refuse(errno.ENOSPC))
        yield


@contextmanager
def failing(_root):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", _refuse(errno.EIO))
        yield


@contextmanager
def replaced(root, put):
    """Put something in the place of both folders, which is removed again."""
    for name in ("memory", "sessions"):
        if (root / name).exists():
            (root / name).rename(root / f"{name}-aside")
        put(root / name)
    yield
    for name in ("memory", "sessions"):
        (root / name).unlink()
        if (root / f"{name}-aside").exists():
            (root / f"{name}-aside").rename(root / name)


@contextmanager
def files_in_the_place_of_folders(root):
    with replaced(root, lambda place: place.write_text("not a folder")):
        yield


@contextmanager
def links_in_the_place_of_folders(root):
    elsewhere = root.with_name("elsewhere")
    for name in ("memory", "sessions"):
        (elsewhere / name).mkdir(parents=True)
    with replaced(root, lambda place: place.symlink_to(elsewhere / place.name)):
        yield
    assert not [path for path in elsewhere.rglob("*") if path.is_file()]
    shutil.rmtree(elsewhere)


UNWRITABLE = {
    way.__name__.replace("_", " "): way
    for way in (
        gone,
        replaced_by_a_file,
        read_only,
        full,
        failing,
        files_in_the_place_of_folders,
        links_in_the_place_of_folders,
    )
}
