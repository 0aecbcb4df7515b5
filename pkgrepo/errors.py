"""
Domain errors, with their data and without HTTP terms.

``str(error)`` is a sentence for the user of a client: it names the package, the rule and the setting that decides. Each
format maps these types to HTTP statuses in one table.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from attrs import define

from pkgrepo.sentences import TOO_MANY_OPEN_FILES

T = TypeVar("T")

MOST_ERRORS = 100  # of one kind reported at once; the first ones are enough to find the mistake


class PkgrepoError(Exception):
    """Base class of all domain errors."""


@define
class MessageError(PkgrepoError):
    """Base class of errors that are raised with their sentence."""

    message: str

    def __str__(self) -> str:
        return self.message


@define
class Invalid(MessageError):
    """A value from outside is invalid; ``pointer`` is a JSON pointer or the name of a field."""

    pointer: str = ""


@define
class NotFound(PkgrepoError):
    """It does not exist, or the caller may not know that it exists."""

    what: str
    name: str

    def __str__(self) -> str:
        return f"{self.what} {self.name!r} does not exist"


@define
class AlreadyExists(PkgrepoError):
    """An object of this name exists."""

    what: str
    name: str

    def __str__(self) -> str:
        return f"{self.what} {self.name!r} already exists"


class Conflict(MessageError):
    """The request conflicts with the current state."""


@define
class FileExists(PkgrepoError):
    """A file of this name is published with other content."""

    filename: str
    stored_sha256: str

    def __str__(self) -> str:
        return f"File already exists ({self.filename!r}, stored sha256 {self.stored_sha256[:12]})"


@define
class FileBurned(PkgrepoError):
    """A file of this name was deleted, and the name cannot be published again (it is burned)."""

    filename: str

    def __str__(self) -> str:
        return (
            f"File already exists ({self.filename!r} was deleted here, and its name is not given out again: "
            "policy.reuse_deleted_names of the repository decides)"
        )


class AuthenticationFailed(PkgrepoError):
    """The credentials are wrong. The message never says which part."""

    def __str__(self) -> str:
        return "incorrect username or password, or an unknown, expired or revoked token"


class SecondFactorRequired(AuthenticationFailed):
    """
    The password is right, and the account also needs a code.

    ``gem`` asks for the code by how the sentence begins, npm by the ``challenge``.
    """

    challenge = b"OTP"

    def __str__(self) -> str:
        return (
            "You have enabled multifactor authentication: send a one-time password, too (npm --otp, gem --otp, or the "
            "header field OTP), or use an access token"
        )


class SecondFactorMissing(AuthenticationFailed):
    """The password is right, and the account must have a second factor and has none."""

    def __str__(self) -> str:
        return "this account needs a second factor to log in with its password: set it up at /ui/second-factor"


@define
class AuthenticationRequired(MessageError):
    """There are no credentials, and anonymous callers may not do this."""

    message: str = "authentication required"


@define
class TooManyAttempts(PkgrepoError):
    """Too many failed logins; try again after ``retry_after_s`` seconds."""

    retry_after_s: int

    def __str__(self) -> str:
        return f"too many failed logins; try again in {self.retry_after_s} seconds"


class Forbidden(MessageError):
    """The caller is authenticated and may not do this."""


@define
class RepositoryInactive(PkgrepoError):
    """The repository is switched off."""

    path: str

    def __str__(self) -> str:
        return f"repository {self.path} is not active"


class ReadOnly(MessageError):
    """Clients can publish, change and delete nothing in the repository."""


@define
class TooLarge(PkgrepoError):
    """More bytes than allowed."""

    limit: int
    what: str = "upload"

    def __str__(self) -> str:
        return f"{self.what} is larger than the limit of {self.limit} bytes"


@define
class DigestMismatch(PkgrepoError):
    """The digest of the received bytes differs from the announced one."""

    algorithm: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.algorithm} digest mismatch: announced {self.expected}, received {self.actual}"


@define
class SizeMismatch(PkgrepoError):
    """The number of received bytes differs from the announced one."""

    expected: int
    actual: int

    def __str__(self) -> str:
        return f"{self.actual} bytes received where {self.expected} were announced"


@define
class BlobMissing(PkgrepoError):
    """The blob store has no blob under this locator."""

    locator: str

    def __str__(self) -> str:
        return "the stored bytes are missing"


@define
class StorageFull(PkgrepoError):
    """The disk has no room; nothing was stored."""

    storage: str

    def __str__(self) -> str:
        return f"storage {self.storage!r} has no room left"


class Outdated(Conflict):
    """Something else was stored since this was read: prepare the change again."""


@define
class QuotaExceeded(PkgrepoError):
    """
    A quota leaves no room for this; nothing was stored.

    ``subject`` has the quota, ``what`` is bytes, packages, versions or file_size; ``added`` would have been added to
    what is ``used``.
    """

    subject: str
    what: str
    limit: int
    used: int = 0
    added: int = 0

    def __str__(self) -> str:
        if self.what == "file_size":
            return f"the quota of {self.subject} allows files of at most {self.limit} bytes"
        return (
            f"the quota of {self.subject} is exceeded: it allows {self.limit} {self.what}, {self.used} are used, "
            f"and this adds {self.added or 'more'}"
        )


@define
class StorageFailed(PkgrepoError):
    """The device of the storage failed; nothing was stored."""

    storage: str

    def __str__(self) -> str:
        return f"storage {self.storage!r} cannot store this now"


@define
class TooManyOpenFiles(StorageFailed):
    """The process has no file descriptor left; nothing was stored."""

    def __str__(self) -> str:
        return TOO_MANY_OPEN_FILES


class SecretUnreadable(PkgrepoError):
    """A stored secret cannot be decrypted: the server's key is not the one that it was stored with."""

    def __str__(self) -> str:
        return "stored credentials cannot be decrypted with the key of this server; set them again"


@define
class Expired(PkgrepoError):
    """Something is past its expiry."""

    what: str
    at: datetime

    def __str__(self) -> str:
        return f"{self.what} expired at {self.at:%Y-%m-%d %H:%M:%S} UTC"


@define
class PositionLost(PkgrepoError):
    """A log does not have the event at which a caller wants to go on: it was restored from an older backup."""

    position: str

    def __str__(self) -> str:
        return f"the log has no event {self.position} (any more): read everything again, and go on with a new position"


@define
class UpstreamFailed(PkgrepoError):
    """
    An upstream gave no usable answer; base class of the others.

    ``route`` is the name of the route. ``reason`` is a clause about "it", the upstream, without addresses and URLs.
    """

    route: str
    reason: str

    def __str__(self) -> str:
        return f"upstream {self.route!r} cannot be used: {self.reason}"


@define
class IssuerUnavailable(PkgrepoError):
    """An OpenID Connect issuer gave no usable answer; ``reason`` is a clause about "it"."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"the issuer {self.name!r} cannot be used now: {self.reason}"


@define
class DirectoryUnavailable(IssuerUnavailable):
    """A directory (LDAP) gave no usable answer, so that nobody knows whether a password is right."""

    def __str__(self) -> str:
        return f"the directory {self.name!r} cannot be asked now: {self.reason}"


@define
class IdentityRefused(MessageError):
    """
    An identity token is not accepted; ``code`` is one of those of trusted publishing.

    The sentence names what the token itself claims, and nothing of this server's settings.
    """

    code: str = "invalid-token"


@define
class UpstreamUnavailable(UpstreamFailed):
    """It cannot be reached, or says that it is out of order. ``retry_after_s``: when it is asked again, if known."""

    retry_after_s: int | None = None


class UpstreamTimeout(UpstreamFailed):
    """It did not answer, or not to the end, in time."""


@define
class UpstreamLimited(UpstreamFailed):
    """It answers no more of our requests for ``retry_after_s`` seconds."""

    retry_after_s: int


@define
class UpstreamLoop(UpstreamFailed):
    """It asks this server in turn for what it is asked for, directly or through others."""

    reason: str = "it leads back to where the request came from"


class UpstreamDenied(UpstreamFailed):
    """It answered 403 or 451: a decision about what was asked, which ends the search. ``reason`` is what it says."""

    def __str__(self) -> str:
        return f"upstream {self.route!r} refuses this: {self.reason}"


class UpstreamMisconfigured(UpstreamFailed):
    """It cannot be used before a setting is changed, here or there; another try does not mend it."""


class UpstreamForbiddenAddress(UpstreamMisconfigured):
    """It leads to an address to which the server makes no connections, see the setting ``proxy.allow_private``."""


class UpstreamTruncated(UpstreamFailed):
    """Its answer ended too early; what was read of it is worth nothing."""


class UpstreamTooLarge(UpstreamFailed):
    """Its answer is larger than allowed."""


class UpstreamMismatch(UpstreamFailed):
    """Its file is not the one that it, or its index, announced; nothing of it is kept."""


def existing(value: T | None, what: str, name: str) -> T:
    """
    The result of a look-up that must find something; ``what`` and ``name`` are those of L{NotFound}.

    :raises NotFound: it is None
    """
    if value is None:
        raise NotFound(what, name)
    return value
