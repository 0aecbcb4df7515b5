"""Small file systems, which tests fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.configurations import hosted

MIB = 1024 * 1024


@contextmanager
def file_system(place: Path, size: str) -> Iterator[Path]:
    """Mount a tmpfs on a new folder, whose size is as mount(8) takes it."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount file systems")
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "pkgrepo-test", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"this machine does not mount: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def small_storage(place: Path, format: str, name: str) -> str:
    """Return the configuration of a storage ``small`` at this place, with one repository."""
    return f'[[bootstrap.storages]]\nname = "small"\npath = "{place}"\n' + hosted(format, **{name: 'storage = "small"'})


@contextmanager
def filled(folder: Path) -> Iterator[Callable[[], None]]:
    """Fill the file system; yields a function that fills it again."""
    name = folder / "filler"
    with name.open("wb", buffering=0) as file:

        def fill() -> None:
            for size in (MIB, 4096, 1):
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError:
                    continue

        try:
            fill()
            yield fill
        finally:
            name.unlink()
