"""Passwords and tokens of a run where nobody may read them: in logs, in the data folder, and in lists of processes."""

from __future__ import annotations

from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import AnyStr, Final

HEAD: Final = 8  # letters by which secrets begin alike, such as pkgr_ci_
SHOWN: Final = 12  # letters of a secret in what is told about it
CONTENT: Final = "storages"  # the folder of packages, which may have anything in them


def in_texts(secrets: Iterable[str], texts: Iterable[str]) -> Iterator[str]:
    """The secrets that texts such as logs have, also as in header fields."""
    forms = {form: each for each in secrets for form in (each, b64encode(f"admin:{each}".encode()).decode())}
    for text in texts:
        for form in _found(forms, text):
            line = next((each for each in text.splitlines() if form in each), "")
            yield f"a log has the secret {forms[form][:SHOWN]}...: {line.replace(form, '***')[:300]}"


def in_files(secrets: Iterable[str], folder: Path) -> Iterator[str]:
    """The secrets that files of a data folder have, except packages."""
    wanted = [each.encode() for each in secrets]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and CONTENT not in path.relative_to(folder).parts:
            found = _found(wanted, path.read_bytes())
            yield from (f"{path.name} has the secret {each[:SHOWN].decode()}..." for each in found)


def in_arguments(secrets: Iterable[str], top: int, processes: Path = Path("/proc")) -> Iterator[str]:
    """The secrets in the command lines of the processes below one; others of this machine may have the same secret."""
    wanted, below = [each.encode() for each in secrets], [top]
    for pid in below:  # which grows
        with suppress(OSError):  # it has ended
            found = _found(wanted, (processes / str(pid) / "cmdline").read_bytes())
            yield from (f"the arguments of process {pid} have the secret {each[:SHOWN].decode()}..." for each in found)
            for children in (processes / str(pid) / "task").glob("*/children"):
                below += map(int, children.read_text().split())


def _found(wanted: Iterable[AnyStr], data: AnyStr) -> list[AnyStr]:
    """
    Those of many texts that data has. Those that begin alike, as tokens do, are looked for at once.

    A run makes thousands of tokens, and a catalog has hundreds of megabytes.
    """
    alike: dict[tuple[AnyStr, int], set[AnyStr]] = defaultdict(set)
    for each in wanted:
        alike[each[:HEAD], len(each)].add(each)
    found = set()
    for (head, size), members in alike.items():
        at = data.find(head)
        while at >= 0:
            if (part := data[at : at + size]) in members:
                found.add(part)
            at = data.find(head, at + 1)
    return sorted(found)
