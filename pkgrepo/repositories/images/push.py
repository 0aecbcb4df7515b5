"""What a push of a manifest asks for, and why it is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from attrs import Factory, define, frozen

from pkgrepo.errors import Conflict, PkgrepoError
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.storage.catalog.images.manifests import ManifestRecord

NAMED = 10  # digests in a sentence


@frozen
class Reference:
    """
    Content that a manifest refers to.

    ``kind`` is config, layer or manifest; ``size`` is the one in the descriptor, in bytes.
    """

    digest: str
    kind: str
    size: int


@frozen
class TagCondition:
    """Condition of a push on its tag: the tag is ``absent``, or points to one of ``digests`` (``*``: to any)."""

    digests: frozenset[str] = frozenset()
    absent: bool = False


@frozen
class Quarantine:
    """
    The rule for a manifest that needs a signature: one by a key of ``keys``, which are ids as in the catalog.

    Without one the manifest is invisible to readers, and is removed at ``expires_ms``.
    """

    keys: tuple[str, ...]
    expires_ms: int


@frozen
class VerifiedSignatures:
    """
    The signatures that a manifest holds: ids of the keys by the digest that they signed.

    They were verified with the keys that are ``trusted`` now; ``key_set`` is the id of this set.
    """

    trusted: tuple[str, ...]
    key_set: str
    signed: Mapping[str, frozenset[str]] = Factory(dict)


@frozen
class Push:
    """
    A manifest to store, and the tags to point to it.

    ``immutable`` are the tags among them that may not be moved; ``condition`` is on the first tag. With a
    ``quarantine`` readers see the manifest only when it is signed. ``signatures`` are None if the manifest was not
    searched for them. ``client`` is the one whose leases the push fulfils (see ``leases`` of the catalog).
    ``alone`` says whether the client named the image without its repository; None if the address does not tell.
    ``upstream`` says where a manifest comes from that no client pushed.
    """

    manifest: ManifestRecord
    blob: BlobInfo
    required: tuple[Reference, ...]
    tags: tuple[str, ...] = ()
    immutable: Collection[str] = ()
    condition: TagCondition | None = None
    quarantine: Quarantine | None = None
    signatures: VerifiedSignatures | None = None
    client: str | None = None
    alone: bool | None = None
    upstream: Mapping[str, Any] | None = None


@define
class ReferencesMissing(PkgrepoError):  # noqa: N818 - named for what happened
    """A manifest refers to content that its image does not have."""

    digests: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {len(self.digests) - NAMED} more" if len(self.digests) > NAMED else ""
        return f"the manifest refers to content that this image does not have: {', '.join(self.digests[:NAMED])}{more}"


@define
class TagExists(PkgrepoError):  # noqa: N818 - named for what happened
    """A tag points to another manifest, and the repository does not allow moving it."""

    tag: str
    current: str
    pushed: str

    def __str__(self) -> str:
        return f"tag {self.tag} already exists and this repository does not allow tags to be overwritten"


@define
class TagImmutable(Conflict):
    """A tag is neither moved nor deleted, by the policy of its repository."""

    def __init__(self, tag: str) -> None:
        super().__init__(f"tag {tag} is immutable in this repository (policy.immutable_tags): it stays as it is")


def fixed_tags(repository: Repository, tags: Iterable[str]) -> list[str]:
    """The tags, of those given, that are neither moved nor deleted (``policy.immutable_tags``)."""
    globs = repository.policy.get("immutable_tags", ())
    return [tag for tag in tags if globs and any(fnmatchcase(tag, glob) for glob in globs)]


@define
class TagConditionFailed(PkgrepoError):  # noqa: N818 - named for what happened
    """A tag does not point to what the condition of the request says (``If-Match``, ``If-None-Match``)."""

    tag: str

    def __str__(self) -> str:
        return f"tag {self.tag} does not stand for what the request expects"
