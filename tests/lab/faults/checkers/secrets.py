"""Passwords and tokens of a run where nobody may read them: in logs, in the data folder, and in lists of processes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

SHOWN: Final = 12  # letters of a secret in what is told about it
CONTENT: Final = "storages"  # the folder of packages, which may have anything in them


def in_texts(secrets: Iterable[str], texts: Iterable[str]) -> Iterator[str]:
    """The secrets that texts such as logs have, also as in header fields."""
    wanted = {each: (each, b64encode(f"admin:{each}".encode()).decode()) for each in secrets}
    for text in texts:
        for secret, forms in wanted.items():
            for form in forms:
                if form in text:
                    line = next((each for each in text.splitlines() if form in each), "")
                    yield f"a log has the secret {secret[:SHOWN]}...: {line.replace(form, '***')[:300]}"


def in_files(secrets: Iterable[str], folder: Path) -> Iterator[str]:
    """The secrets that files of a data folder have, except packages."""
    wanted = [each.encode() for each in secrets]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and CONTENT not in path.relative_to(folder).parts:
            data = path.read_bytes()
            yield from (f"{path.name} has the secret {each[:SHOWN].decode()}..." for each in wanted if each in data)


def in_arguments(secrets: Iterable[str], processes: Path = Path("/proc")) -> Iterator[str]:
    """The secrets in the command lines of all processes."""
    wanted = [each.encode() for each in secrets]
    for path in processes.glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            data = path.read_bytes()
            yield from (
                f"the arguments of process {path.parent.name} have the secret {each[:SHOWN].decode()}..."
                for each in wanted
                if each in data
            )
