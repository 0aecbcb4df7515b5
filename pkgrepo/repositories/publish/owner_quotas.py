"""
The quotas of owners: of projects, whose packages these are, and of users, who published them.

What they use is added up anew for each publish to which such a quota applies: about a millisecond for a thousand files.
Which packages a project owns is decided by bindings and names (see ``ownership``), which change without a change of the
packages; what a user has published, L{quotas.usage_of_user} says. They bound what clients publish to hosted
repositories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from pkgrepo.auth.permissions.format_rights import rights_of
from pkgrepo.auth.permissions.ownership import ownership, read_owner
from pkgrepo.errors import QuotaExceeded
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Project, Repository, RepositoryType
from pkgrepo.storage.catalog.packages import pins
from pkgrepo.storage.catalog.packages.packages import keys_beginning
from pkgrepo.storage.catalog.packages.pins import Pin
from pkgrepo.storage.catalog.people import projects, users
from pkgrepo.storage.catalog.server import quotas, repositories
from pkgrepo.storage.catalog.server.quotas import Limits, Quota, QuotaKind, Usage
from pkgrepo.storage.catalog.server.reservations import Allowance


@frozen
class Added:
    """What a publish adds to a package; ``largest`` is the size of its largest new file."""

    usage: Usage
    largest: int

    def __add__(self, other: Added) -> Added:
        return Added(self.usage + other.usage, max(self.largest, other.largest))


def check_owner_quotas(
    tx: Transaction, repository: Repository, added: Mapping[str, Added], actor: Actor, now_ms: int
) -> None:
    """
    Check the projects of packages, and the user, after content was ``added`` by the key of the package.

    :raises QuotaExceeded: a quota is exceeded, so that the transaction must not be committed
    """
    if not _counts(repository):
        return
    kinds = quotas.kinds_of_limits(tx)
    if QuotaKind.PROJECT in kinds:
        grown: dict[Project, Added] = {}
        for package, more in added.items():
            owner = read_owner(tx, repository, package)
            if owner is not None:
                grown[owner] = grown[owner] + more if owner in grown else more
        for project, more in grown.items():
            limits = quotas.limits_of(tx, QuotaKind.PROJECT, project.id)
            if limits != Limits():
                used = usage_of_project(tx, project)
                _check(
                    tx, repository, QuotaKind.PROJECT, project.id, f"project {project.key}", limits, used, more, now_ms
                )
    if QuotaKind.USER in kinds and actor.user_id is not None:
        limits = quotas.limits_of(tx, QuotaKind.USER, actor.user_id)
        if limits != Limits():
            used = quotas.usage_of_user(tx, actor.user_id)
            total = Added(Usage(), 0)
            for package, more in added.items():
                total += evolve(more, usage=_for_user(tx, repository, package, actor.user_id, more.usage))
            _check(tx, repository, QuotaKind.USER, actor.user_id, f"user {actor.name}", limits, used, total, now_ms)


def _for_user(r: Reader, repository: Repository, package: str, user_id: int, usage: Usage) -> Usage:
    """What is added to a package, which is a further one of the user if it has no other version of theirs."""
    versions = quotas.versions_by_user(r, repository.id, package, user_id) if usage.versions > 0 else 0
    return evolve(usage, packages=int(0 < versions <= usage.versions))


def _check(
    tx: Transaction,
    repository: Repository,
    kind: QuotaKind,
    subject_id: int,
    name: str,
    limits: Limits,
    used: Usage,
    added: Added,
    now_ms: int,
) -> None:
    if limits.file_size is not None and added.largest > limits.file_size:
        raise QuotaExceeded(name, "file_size", limits.file_size)
    quota = Quota(kind, subject_id, limits.bytes, limits.packages, limits.versions, limits.file_size)
    quotas.check_limits(tx, repository.id, quota, name, used, added.usage, now_ms)


def owner_allowances(r: Reader, repository: Repository, package: str | None, user_id: int | None) -> list[Allowance]:
    """What the owners of an upload leave for it: the project of its package, and its user, as far as they are known."""
    if not _counts(repository):
        return []
    kinds, found = quotas.kinds_of_limits(r), list[Allowance]()
    owner = read_owner(r, repository, package) if package is not None and QuotaKind.PROJECT in kinds else None
    if owner is not None:
        limits = quotas.limits_of(r, QuotaKind.PROJECT, owner.id)
        used = 0 if limits.bytes is None else usage_of_project(r, owner).bytes
        found.append(
            Allowance(QuotaKind.PROJECT, owner.id, f"project {owner.key}", limits.bytes, used, limits.file_size)
        )
    if user_id is not None and QuotaKind.USER in kinds:
        limits = quotas.limits_of(r, QuotaKind.USER, user_id)
        used = 0 if limits.bytes is None else quotas.usage_of_user(r, user_id).bytes
        name = f"user {users.get_user(r, user_id).username}"
        found.append(Allowance(QuotaKind.USER, user_id, name, limits.bytes, used, limits.file_size))
    return found


def _counts(repository: Repository) -> bool:
    return not repository.is_companion and repository.type is RepositoryType.HOSTED


def usage_of_project(r: Reader, project: Project) -> Usage:
    """What the packages use that a project owns, with what is in the trash of them."""
    total = Usage()
    for repository, prefixes in _places(r, project):
        total += quotas.usage_of_packages(r, repository.id, _owned(r, project, repository, prefixes))
    return total


def usage_of(r: Reader, kind: QuotaKind, subject_id: int) -> Usage:
    """What a subject of any kind uses. Call it on a reader thread."""
    if kind is QuotaKind.PROJECT:
        return usage_of_project(r, projects.get_project(r, subject_id))
    return quotas.usage_of_user(r, subject_id) if kind is QuotaKind.USER else quotas.usage_of(r, kind, subject_id)


def list_owner_quotas(r: Reader) -> list[tuple[Quota, str, Usage]]:
    """The quotas of projects and users that have one, with their keys and user names, and what is used."""
    found = [
        (each, project.key, usage_of_project(r, project))
        for each in quotas.quotas_of_kind(r, QuotaKind.PROJECT)
        for project in [projects.get_project(r, each.subject_id)]
    ]
    return found + [
        (each, users.get_user(r, each.subject_id).username, quotas.usage_of_user(r, each.subject_id))
        for each in quotas.quotas_of_kind(r, QuotaKind.USER)
    ]


def pins_of_project(r: Reader, project: Project) -> list[Pin]:
    """The pins of the packages that a project owns."""
    found: list[Pin] = []
    for repository_id in pins.repositories_with_pins(r):
        repository = repositories.get_repository(r, repository_id)
        found += [
            each
            for each in pins.list_pins(r, repository_id)
            if (owner := read_owner(r, repository, each.package_key)) is not None and owner.id == project.id
        ]
    return found


def _places(r: Reader, project: Project) -> Iterator[tuple[Repository, set[str]]]:
    """The hosted repositories that may have packages of a project, with what their keys begin with."""
    prefixes: dict[int, set[str]] = {}
    for each in projects.list_bindings(r, project_id=project.id):
        prefixes.setdefault(each.repository_id, set()).add(each.pattern.removesuffix("*"))
    for repository in repositories.repositories_of_type(r, RepositoryType.HOSTED):
        if rights_of(repository.format).project_key is not None:  # in any repository names may name the project
            prefixes.setdefault(repository.id, set()).add(project.key)
        if repository.parent is None and repository.id in prefixes:
            yield repository, prefixes[repository.id]


def _owned(r: Reader, project: Project, repository: Repository, prefixes: Iterable[str]) -> list[str]:
    """The keys of the packages of a repository that a project owns, also of those that are in the trash alone."""
    bound = {each.pattern: each.project_id for each in projects.list_bindings(r, repository_id=repository.id)}
    keys = {key for prefix in prefixes for key in keys_beginning(r, repository.id, prefix)}
    return [key for key in keys if _owner(repository, key, bound, project) == project.id]


def _owner(repository: Repository, key: str, bound: Mapping[str, int], project: Project) -> int | None:
    rule = ownership(repository, key)
    for pattern in rule.patterns:
        if pattern in bound:
            return bound[pattern]
    named = rule.project_key is not None and users.name_key(rule.project_key) == project.key
    return project.id if named else None
