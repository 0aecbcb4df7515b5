"""Which project owns a package, by its name; see L{FormatRights} of each format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from pkgrepo.auth.permissions.format_rights import rights_of
from pkgrepo.errors import Forbidden, Invalid
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Project, ProjectRole, Repository
from pkgrepo.storage.catalog.people.projects import (
    claim_names,
    get_project,
    list_bindings,
    owning_project,
    projects_bound_in,
    projects_with_publishers,
    roles_of_user,
)
from pkgrepo.storage.catalog.people.tokens import find_token
from pkgrepo.storage.catalog.people.users import find_user


@frozen
class Ownership:
    """
    How to find the owner of a package, and what its first pusher claims.

    ``patterns`` are bindings, the most specific first; ``project_key`` is the owner named by the package name, or None.
    A claim binds ``claim`` to a new project ``claim_key``, which cannot be part of an image name.
    """

    patterns: tuple[str, ...]
    project_key: str | None
    claim: str
    claim_key: str


def ownership(repository: Repository, package: str) -> Ownership:
    """The ownership rule for a package key in a repository."""
    rights = rights_of(repository.format)
    claim = rights.claim(package)
    project_key = None if rights.project_key is None else rights.project_key(package)
    claim_key = project_key or f"{repository.storage_name}.{repository.name}:{claim}"
    return Ownership(patterns=rights.patterns(package), project_key=project_key, claim=claim, claim_key=claim_key)


def check_pattern(repository: Repository, pattern: str, package_key: Callable[[str], str]) -> None:
    """
    Check a binding of a repository whose format makes the keys of names by ``package_key``.

    :raises Invalid: it can match no package, so that it would protect nothing
    """
    rights = rights_of(repository.format)
    stem, sample = rights.stem(pattern)
    try:
        if "*" in stem or not stem:
            raise Invalid("it has an asterisk", "")
        key = package_key(sample or stem)
    except Invalid:
        raise Invalid(
            f"{pattern!r} matches no package of {repository.path}; write {rights.forms}", "/pattern"
        ) from None
    if key != (sample or stem):  # stored in that form, it would not be what `repo apply` has declared
        compared = key if sample else key + pattern[len(stem) :]
        raise Invalid(f"{pattern!r} matches no package of {repository.path}, but {compared!r} does", "/pattern")


def read_owner(r: Reader, repository: Repository, package: str) -> Project | None:
    """The project that owns a package name, or None; the package need not exist."""
    rule = ownership(repository, package)
    return owning_project(r, repository.id, rule.patterns, rule.project_key)


def read_owners(r: Reader, repository: Repository, members: Iterable[int], *, pipeline: bool) -> list[Project]:
    """
    The projects that own names in a repository, as far as that matters to somebody.

    Images may name any project, so of these it reads the projects with the ids ``members``, and for a ``pipeline``
    those that have publishers.
    """
    found = {each.id: each for each in projects_bound_in(r, repository.id)}
    if rights_of(repository.format).project_key is not None:
        named = [get_project(r, each) for each in members] + (projects_with_publishers(r) if pipeline else [])
        found |= {each.id: each for each in named if _may_name_images(each)}
    return [*found.values()]


@frozen
class Owned:
    """A project, and the patterns of the names that it owns in a repository."""

    repository: Repository
    project: Project
    patterns: Sequence[str]


def read_owned(r: Reader, project_ids: Iterable[int], repositories: Iterable[Repository]) -> list[Owned]:
    """What projects own in repositories, by the bindings, and of images by their keys; both in the order given."""
    places, found = list(repositories), []
    for project in [get_project(r, each) for each in project_ids]:
        bound: dict[int, list[str]] = {}
        for each in list_bindings(r, project_id=project.id):
            bound.setdefault(each.repository_id, []).append(each.pattern)
        for place in places:
            names_it = rights_of(place.format).project_key is not None and _may_name_images(project)
            patterns = [*bound.get(place.id, ()), *([project.key] if names_it else [])]
            if patterns:
                found.append(Owned(place, project, list(dict.fromkeys(patterns))))
    return found


def _may_name_images(project: Project) -> bool:
    """Whether the names of images may begin with the key of a project: not if it is that of a claim."""
    return ":" not in project.key


def claim_packages(tx: Transaction, repository: Repository, packages: Iterable[str], actor: Actor, now_ms: int) -> None:
    """
    Bind packages that no project owns to projects of their first pusher, if the rule ``auto_create_projects`` says so.

    It runs in the transaction of the publish, so that one of two concurrent first pushers wins. A pusher who is in the
    owning project by then, by a claim in another request, has nothing to claim; nor has an admin, or a pipeline.

    :raises Forbidden: another pusher claimed a package meanwhile
    """
    rules = repository.push_rules
    if not (rules.get("must_be_project_member") and rules.get("auto_create_projects")):
        return
    if actor.user_id is None or repository.parent is not None:  # a companion's packages are made from its parent's
        return
    user = find_user(tx, actor.user_id)
    token = None if actor.token_id is None else find_token(tx, actor.token_id)
    if user is None or user.admin or (token is not None and token.pipeline is not None):
        return
    for package in packages:
        _claim(tx, repository, package, user.id, now_ms)


def _claim(tx: Transaction, repository: Repository, package: str, user_id: int, now_ms: int) -> None:
    rule = ownership(repository, package)
    found = owning_project(tx, repository.id, rule.patterns, rule.project_key)
    if found is None:
        claim_names(tx, repository.id, pattern=rule.claim, project_key=rule.claim_key, owner_id=user_id, now_ms=now_ms)
        return
    role = roles_of_user(tx, user_id).get(found.id)
    if role is None or role.rank < ProjectRole.DEVELOPER.rank:
        raise Forbidden(f"{package!r} in {repository.path} was claimed by another project a moment ago")
