"""Lock files of each format's clients, as `pkgrepo check` and mirrors read them, by the patterns of their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from pkgrepo.gateway.mirrored.locks import Lock
from pkgrepo.gateway.mirrored.reading import find_formats
from tests.lab.fuzz.target import Target
from tests.support.added_formats import ADDED

from .in_archives import YAML_WORDS

TOML_WORDS: Final = (b"[[package]]\n", b"[metadata]\n", b"'''", b"inf", b"0x1_0", b"1979-05-27T07:32:00Z", b"{ }")


def _read(data: bytes, reader: Callable[[str], Lock]) -> None:
    reader(data.decode("utf-8", "replace").removeprefix("\ufeff"))


def targets() -> Iterator[Target]:
    """One for each kind of file, one for the list of each format, and the guess of the format."""
    formats = {name: each.mirrored for name, each in make_formats(Config()).items() if name not in ADDED}
    for name, each in formats.items():
        for file in each.lock_files:
            stem = "".join(char for char in file.names[0] if char.isalnum() or char in ".-").strip(".-")
            words = (*TOML_WORDS, *YAML_WORDS)
            yield Target(f"lock-{stem.replace('.', '-')}", partial(_read, reader=file.read), words)
        yield Target(f"list-{name}", partial(_read, reader=each.read_list))
    yield Target("lock-format", lambda data: find_formats("a.txt", data.decode("utf-8", "replace"), formats))
