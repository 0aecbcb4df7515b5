"""What a change of an image does to the trust in its manifests, as part of the transaction of the change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import frozen

from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Package, Repository
from pkgrepo.repositories.publish.events import append_package_event, bump_package_serial
from pkgrepo.storage.catalog.images.signatures import TrustChange, derive_trust, note_signature
from pkgrepo.storage.catalog.packages import packages


@frozen
class Signed:
    """A manifest that was found to hold signatures of the digest ``subject`` by these keys."""

    manifest: str
    subject: str
    keys: frozenset[str]


def note_signatures(
    tx: Transaction,
    repository: Repository,
    image: str,
    found: Sequence[Signed],
    trusted: Collection[str],
    actor: Actor,
    now_ms: int,
) -> None:
    """
    Note signatures of an image that were verified, and show by them what one of the ``trusted`` keys has signed.

    An image or a manifest that went meanwhile is no error.
    """
    package = packages.find_package(tx, repository.id, image)
    if package is None:
        return
    for each in found:
        note_signature(tx, package.id, each.manifest, each.subject, each.keys)
    derive_all(tx, repository, package, sorted({each.subject for each in found}), trusted, actor, now_ms)


def derive_all(
    tx: Transaction,
    repository: Repository,
    package: Package,
    digests: Iterable[str],
    trusted: Collection[str],
    actor: Actor,
    now_ms: int,
) -> None:
    """Derive the trust in some manifests of an image anew, and tell of what changed by it."""
    for digest in digests:
        tell_change(tx, repository, package, digest, derive_trust(tx, package.id, digest, trusted), actor, now_ms)


def tell_change(
    tx: Transaction,
    repository: Repository,
    package: Package,
    digest: str,
    change: TrustChange,
    actor: Actor,
    now_ms: int,
) -> None:
    """Add the events of a change of the trust in a manifest, if there is any."""
    if change == TrustChange():
        return
    package = bump_package_serial(tx, repository, package, now_ms)
    if change.gained or change.settled:
        append_package_event(tx, package, "trusted", {"digest": digest, "keys": sorted(change.gained)}, actor, now_ms)
    if change.lost:
        append_package_event(tx, package, "untrusted", {"digest": digest, "keys": sorted(change.lost)}, actor, now_ms)
