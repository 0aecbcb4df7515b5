"""
Owners of packages, as clients of formats list and change them.

They are a note: the people whom the author of a package names. What a user may do is decided by the permissions of the
repository.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.errors import Invalid, NotFound, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Package, Repository, User
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.package_changes import set_package_meta
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.people import users

OWNERS: Final = "owners"  # in the metadata of a package
OWNER: Final = "owner"  # what is not found
MOST_OWNERS: Final = 100


def owners_of(r: Reader, package: Package) -> list[str]:
    """The names of the owners; until the first change that is who published the first version."""
    stated = package.meta.get(OWNERS)
    if stated is not None:
        return list(stated)
    publisher = versions.first_publisher(r, package.id)
    return [publisher] if publisher else []


def read_owners(r: Reader, repository_id: int, key: str) -> Sequence[tuple[str, User | None]]:
    """The names of a package's owners with their accounts, if these exist. :raises NotFound: no such package"""
    package = existing(packages.find_package(r, repository_id, key), "package", key)
    return [(handle, users.find_user_by_name(r, handle)) for handle in owners_of(r, package)]


def change_owners(
    tx: Transaction,
    repository: Repository,
    key: str,
    given: Sequence[str],
    add: bool,
    actor: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> list[str]:
    """
    The write command that adds or removes owners, by names or emails. Returns their names.

    :raises NotFound: no such package, or user or owner; :raises Invalid: no owner would be left, or there are too many
    """
    package = existing(packages.find_package(tx, repository.id, key), "package", key)
    owners = owners_of(tx, package)
    handles = [_find(tx, each, owners, add=add) for each in given]
    after = [each for each in owners if each not in handles] + (handles if add else [])
    if not after:
        raise Invalid(f"{', '.join(handles)} is the only owner of {package.name}; add another one first", "email")
    if len(after) > MOST_OWNERS:
        raise Invalid(f"a package has at most {MOST_OWNERS} owners", "email")
    set_package_meta(tx, repository, key, {OWNERS: after}, actor, indexer, now_ms)
    return handles


def _find(r: Reader, given: str, owners: Sequence[str], *, add: bool) -> str:
    if not add and given in owners:
        return given  # also one whose account is gone
    user = users.find_user_by_name(r, given) if "@" not in given else None
    if user is None and not add:
        held = (users.find_user_by_name(r, each) for each in owners)
        user = next((each for each in held if each is not None and each.email == given), None)
    if user is None or (not add and user.username not in owners):
        raise NotFound(OWNER, given[:200])
    return user.username
