"""
What can go wrong in the domain, with its data and no HTTP words.

``str(error)`` is a sentence for the person at the client: it names the package, the rule and the setting that decides.
Formats map these types to statuses in one table each.
"""

from __future__ import annotations

from datetime import datetime

from attrs import define

from pkgrepo.diagnostics.descriptors import SENTENCE

MOST_ERRORS = 100  # of one kind that are told at once: whoever sends more that is wrong is helped by the first ones


class PkgrepoError(Exception):
    """Root of the domain's errors."""


@define
class Invalid(PkgrepoError):
    """A value from outside does not follow its grammar; ``pointer`` is a JSON pointer or a field's name."""

    message: str
    pointer: str = ""

    def __str__(self) -> str:
        return self.message


@define
class NotFound(PkgrepoError):
    """Nothing is there, or nothing that the caller may know of."""

    what: str
    name: str

    def __str__(self) -> str:
        return f"{self.what} {self.name!r} does not exist"


@define
class AlreadyExists(PkgrepoError):
    """The name is taken."""

    what: str
    name: str

    def __str__(self) -> str:
        return f"{self.what} {self.name!r} already exists"


@define
class Conflict(PkgrepoError):
    """The request contradicts the present state."""

    message: str

    def __str__(self) -> str:
        return self.message


@define
class FileExists(PkgrepoError):
    """A file of this name is published with other content."""

    filename: str
    stored_sha256: str

    def __str__(self) -> str:
        return f"File already exists ({self.filename!r}, stored sha256 {self.stored_sha256[:12]})"


@define
class FileBurned(PkgrepoError):
    """A file of this name was deleted, and the name stays burned: nothing is published under it again."""

    filename: str

    def __str__(self) -> str:
        return (
            f"File already exists ({self.filename!r} was deleted here, and its name is not given out again: "
            "policy.reuse_deleted_names of the repository decides)"
        )


class AuthenticationFailed(PkgrepoError):
    """The credentials are wrong. The text never says which part."""

    def __str__(self) -> str:
        return "incorrect username or password, or an unknown, expired or revoked token"


@define
class AuthenticationRequired(PkgrepoError):
    """Nobody was named, and anonymous callers may not do this."""

    message: str = "authentication required"

    def __str__(self) -> str:
        return self.message


@define
class TooManyAttempts(PkgrepoError):
    """Too many failed logins; try again after ``retry_after_s`` seconds."""

    retry_after_s: int

    def __str__(self) -> str:
        return f"too many failed logins; try again in {self.retry_after_s} seconds"


@define
class Forbidden(PkgrepoError):
    """The caller is known and may not do this."""

    message: str

    def __str__(self) -> str:
        return self.message


@define
class RepositoryInactive(PkgrepoError):
    """The repository is switched off."""

    path: str

    def __str__(self) -> str:
        return f"repository {self.path} is not active"


@define
class ReadOnly(PkgrepoError):
    """The repository takes no uploads."""

    message: str

    def __str__(self) -> str:
        return self.message


@define
class TooLarge(PkgrepoError):
    """More bytes than allowed."""

    limit: int
    what: str = "upload"

    def __str__(self) -> str:
        return f"{self.what} is larger than the limit of {self.limit} bytes"


@define
class DigestMismatch(PkgrepoError):
    """The bytes received are not the bytes announced."""

    algorithm: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.algorithm} digest mismatch: announced {self.expected}, received {self.actual}"


@define
class SizeMismatch(PkgrepoError):
    """Fewer or more bytes came than were announced."""

    expected: int
    actual: int

    def __str__(self) -> str:
        return f"{self.actual} bytes received where {self.expected} were announced"


@define
class BlobMissing(PkgrepoError):
    """The store has nothing under this locator."""

    locator: str

    def __str__(self) -> str:
        return "the stored bytes are missing"


@define
class StorageFull(PkgrepoError):
    """No room for the bytes; nothing was stored."""

    storage: str

    def __str__(self) -> str:
        return f"storage {self.storage!r} has no room left"


@define
class StorageFailed(PkgrepoError):
    """The storage's device failed; nothing was stored."""

    storage: str

    def __str__(self) -> str:
        return f"storage {self.storage!r} cannot store this now"


@define
class TooManyOpenFiles(StorageFailed):
    """The process has no file descriptor left; nothing was stored."""

    def __str__(self) -> str:
        return SENTENCE


@define
class Expired(PkgrepoError):
    """Something with an end is past it."""

    what: str
    at: datetime

    def __str__(self) -> str:
        return f"{self.what} expired at {self.at:%Y-%m-%d %H:%M:%S} UTC"
