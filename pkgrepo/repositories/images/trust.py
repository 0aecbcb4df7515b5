"""Trust in images: verified signatures, and the events of what they change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import frozen

from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Package, Repository
from pkgrepo.repositories.publish.package_changes import append_package_event, bump_package_serial
from pkgrepo.storage.catalog.images.signatures import TrustChange, add_signature, derive_trust
from pkgrepo.storage.catalog.packages import packages


@frozen
class FoundSignatures:
    """The verified signatures in a manifest: of the digest ``subject``, by these keys."""

    manifest: str
    subject: str
    keys: frozenset[str]


def note_signatures(
    tx: Transaction,
    repository: Repository,
    image: str,
    found: Sequence[FoundSignatures],
    trusted: Collection[str],
    actor: Actor,
    now_ms: int,
) -> None:
    """
    Store verified signatures of an image, and update the trust in what they sign.

    ``trusted`` are the ids of the trusted keys. It is no error if the image or a manifest was removed meanwhile.
    """
    package = packages.find_package(tx, repository.id, image)
    if package is None:
        return
    for each in found:
        add_signature(tx, package.id, each.manifest, each.subject, each.keys)
    update_trust(tx, repository, package, sorted({each.subject for each in found}), trusted, actor, now_ms)


def update_trust(
    tx: Transaction,
    repository: Repository,
    package: Package,
    digests: Iterable[str],
    trusted: Collection[str],
    actor: Actor,
    now_ms: int,
) -> None:
    """Derive the trust in some manifests of an image from its signatures again, and append the events."""
    for digest in digests:
        change = derive_trust(tx, package.id, digest, trusted)
        append_trust_events(tx, repository, package, digest, change, actor, now_ms)


def append_trust_events(
    tx: Transaction,
    repository: Repository,
    package: Package,
    digest: str,
    change: TrustChange,
    actor: Actor,
    now_ms: int,
) -> None:
    """Append the events for a change of the trust in a manifest; none if nothing changed."""
    if change == TrustChange():
        return
    package = bump_package_serial(tx, repository, package, now_ms)
    if change.gained or change.settled:
        append_package_event(tx, package, "trusted", {"digest": digest, "keys": sorted(change.gained)}, actor, now_ms)
    if change.lost:
        append_package_event(tx, package, "untrusted", {"digest": digest, "keys": sorted(change.lost)}, actor, now_ms)
