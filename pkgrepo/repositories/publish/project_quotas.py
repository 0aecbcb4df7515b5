"""
The quotas of projects: the bytes of the packages that a project owns, in all hosted repositories.

Which packages these are is decided by bindings and names (see ``ownership``), which change without a change of the
packages. So the bytes are added up anew for each publish to a project that has a quota: about a millisecond for a
thousand files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pkgrepo.auth.permissions.ownership import ownership, read_owner
from pkgrepo.errors import QuotaExceeded
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM, Project, Repository, RepositoryType
from pkgrepo.repositories.publish.room import Allowance
from pkgrepo.storage.catalog.packages.events import append_repository_event
from pkgrepo.storage.catalog.packages.packages import keys_beginning
from pkgrepo.storage.catalog.people import projects
from pkgrepo.storage.catalog.server import quotas, repositories


def check_project_quotas(tx: Transaction, repository: Repository, added: Mapping[str, int], now_ms: int) -> None:
    """
    Check the projects of packages, to which bytes were ``added`` (by the key of the package) in this transaction.

    :raises QuotaExceeded: the quota of one is exceeded
    """
    if repository.parent is not None or repository.type is not RepositoryType.HOSTED or not projects.any_quota(tx):
        return
    grown: dict[int, int] = {}
    owners: dict[int, Project] = {}
    for package, size in added.items():
        owner = read_owner(tx, repository, package)
        if owner is not None and owner.quota is not None:
            owners[owner.id] = owner
            grown[owner.id] = grown.get(owner.id, 0) + size
    for key, project in owners.items():
        assert project.quota is not None
        if grown[key] <= 0:
            continue
        used = project_bytes(tx, project)
        before = used - grown[key]
        if used > project.quota:
            raise QuotaExceeded(f"project {project.key}", "bytes", project.quota, before, grown[key])
        if before < project.quota * quotas.WARNED_AT <= used:
            subject = {"kind": "project", "name": f"project {project.key}", "what": "bytes"}
            data = {**subject, "used": used, "limit": project.quota}
            append_repository_event(tx, repository.id, quotas.WARNING, data, SYSTEM, now_ms)


def project_allowance(r: Reader, repository: Repository, package: str) -> Allowance | None:
    """What the project that owns a package leaves for an upload; None if it has no quota."""
    if repository.parent is not None or repository.type is not RepositoryType.HOSTED or not projects.any_quota(r):
        return None
    owner = read_owner(r, repository, package)
    if owner is None or owner.quota is None:
        return None
    return Allowance(("project", owner.id), f"project {owner.key}", owner.quota, project_bytes(r, owner), None)


def project_bytes(r: Reader, project: Project) -> int:
    """The bytes of the packages that a project owns, and of what is in the trash of them."""
    return sum(
        quotas.bytes_of_packages(r, repository.id, _owned(r, project, repository, prefixes))
        for repository, prefixes in _places(r, project)
    )


def _places(r: Reader, project: Project) -> Iterator[tuple[Repository, set[str]]]:
    """The hosted repositories that may have packages of a project, with what their keys begin with."""
    prefixes: dict[int, set[str]] = {}
    for each in projects.list_bindings(r, project_id=project.id):
        prefixes.setdefault(each.repository_id, set()).add(each.pattern.removesuffix("*"))
    for repository in repositories.repositories_of_type(r, RepositoryType.HOSTED):
        if repository.format == "docker":  # an image's name may name its project in any repository
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
    named = rule.project_key is not None and rule.project_key.casefold() == project.key
    return project.id if named else None
