"""Limits of deployments, and what is wrong with one: sentences by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import define, field

from pkgrepo.errors import MOST_ERRORS

MOST_FILES: Final = 10_000  # of one deployment, without checksums; one transaction publishes them, with 0.3 s of CPU
MOST_OPEN: Final = 50  # deployments of one user in one repository that have not ended
OPEN_UPLOADS: Final = 4  # their sizes together, as a multiple of the largest upload
SIGNATURE_SIZE: Final = 1024 * 1024  # bytes; a bundle of sigstore has some ten KiB
LONGEST_NAME: Final = 200  # characters of a deployment's name
SHOWN_COMPONENTS: Final = 1000  # in the status of a deployment


WHOLE: Final = ""  # the path of a problem of the whole deployment
LONGEST: Final = 500  # characters of a sentence

# Of several problems the one that cannot be mended by another bundle decides about the status.
_STATUSES: Final = (507, 403, 409, 413, 400)


@define
class Problems:
    """
    The problems found so far, by path; those after the first ``MOST_ERRORS`` are only counted.

    ``status`` is the HTTP status of a response that waits for the result.
    """

    by_path: dict[str, list[str]] = field(factory=dict)
    status: int = 400
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.by_path)

    def add(self, path: str, sentence: str, status: int = 400) -> None:
        """Add a problem of the file at a path."""
        if status in _STATUSES and _STATUSES.index(status) < _STATUSES.index(self.status):
            self.status = status
        if sum(map(len, self.by_path.values())) >= MOST_ERRORS:
            self.left_out += 1
            return
        shown = path.encode(errors="backslashreplace").decode()
        self.by_path.setdefault(shown, []).append(sentence.encode(errors="backslashreplace").decode()[:LONGEST])

    def texts(self) -> Mapping[str, list[str]]:
        """All sentences by path, with one that tells how many are left out."""
        if not self.left_out:
            return self.by_path
        return {**self.by_path, WHOLE: [*self.by_path.get(WHOLE, ()), f"and {self.left_out} more problems"]}


def first_sentence(errors: Mapping[str, list[str]]) -> str:
    """The first of the sentences, with its path, for those who see only one line."""
    for path, sentences in errors.items():
        if sentences:
            return f"{path}: {sentences[0]}" if path else sentences[0]
    return ""
