"""
Publishers of repositories (see L{pkgrepo.auth.permissions.publishers}), one at a time: checks, and write commands.

A publisher of a package is one whose only pattern is the name of that package, which need not exist: the first publish
makes it. All are in the same setting of the repository.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from pkgrepo.auth.permissions.publishers import STAGE, entry_id, literal_claim, names_owner
from pkgrepo.auth.tokens.limits import covers, literal
from pkgrepo.errors import Conflict, Invalid, NotFound
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.repositories.configuration import MOST_PUBLISHERS, PipelinePublisher, check_publisher
from pkgrepo.storage.catalog.people.projects import get_project, set_project_publishers
from pkgrepo.storage.catalog.server.repositories import get_repository, update_repository

from .issuers import Issuer, Issuers

SOURCES: Final = {"github": "repository", "gitlab": "project_path", "circleci": "oidc.circleci.com/vcs-origin"}
DEFINITIONS: Final = {"github": "workflow_ref", "gitlab": "ci_config_ref_uri"}

Stored = Mapping[str, Any]


def check_given(issuers: Issuers, given: Stored, pointer: str = "") -> None:
    """
    Check the issuer of a publisher, and that the claims name who owns the source where anybody has pipelines.

    :raises Invalid: there is no such issuer, or strangers could publish; with the JSON pointer
    """
    issuer = known_issuer(issuers, given["issuer"], pointer)
    if is_anybody(issuer, given):
        raise Invalid(f"{_nobody(given)}: everybody has pipelines at {issuer.url}", f"{pointer}/claims")


def is_anybody(issuer: Issuer, given: Stored) -> bool:
    """Whether a publisher may be anybody: everybody has pipelines at the issuer, and it does not say whose."""
    return issuer.is_public and not names_owner(given["claims"])


def known_issuer(issuers: Issuers, name: str, pointer: str = "") -> Issuer:
    """The issuer that the settings call so. :raises Invalid: there is none"""
    issuer = issuers.find(name)
    if issuer is None:
        known = f"but {', '.join(issuers.names)}" if issuers.names else "and no other"
        raise Invalid(f"there is no issuer {name!r} in the settings (auth.issuers), {known}", f"{pointer}/issuer")
    return issuer


def warnings_about(issuers: Issuers, given: Stored) -> list[str]:
    """What people should know about a publisher, as sentences."""
    issuer = issuers.find(given["issuer"])
    if issuer is None:
        return [f"the settings have no issuer {given['issuer']!r} (auth.issuers), so that its pipelines cannot publish"]
    if is_anybody(issuer, given):
        return [f"{_nobody(given)}: everybody has pipelines at {issuer.url}, so that this one lets nobody publish"]
    return [] if names_owner(given["claims"]) else [f"{_nobody(given)}: all projects at {issuer.url} may have such"]


def _nobody(given: Stored) -> str:
    claims = ", ".join(f"{name}={value}" for name, value in given["claims"].items())
    return f"no claim says without an asterisk whose pipelines publish ({claims})"


def source_claims(issuer: Issuer, source: str, file: str = "") -> dict[str, str]:
    """
    The claims of pipelines of one source: a repository or project, as a pattern, and the file that defines a pipeline.

    :raises Invalid: the file is no name of one, or it is not known which claims the issuer has
    """
    claims = {SOURCES.get(issuer.kind, "repository"): source}
    if not file:
        return claims
    if "/" in file or "@" in file:
        raise Invalid("the file of a pipeline is its name, without folders", "/file")
    if "**" in source and issuer.kind == "github":  # the name of a branch, behind the file, may have all that follows
        raise Invalid("with a file of the pipeline, write the source without **, such as acme/*", "/source")
    last = literal_claim(file)
    match issuer.kind:
        case "github":
            folder = ".github" if issuer.is_public else "*"  # Forgejo and Gitea look in several
            return {**claims, DEFINITIONS["github"]: f"{source}/{folder}/workflows/{last}@**"}
        case "gitlab":
            parts = urlsplit(issuer.url)
            place = literal_claim(parts.netloc + parts.path.rstrip("/"))
            return {**claims, DEFINITIONS["gitlab"]: f"{place}/{source}//{last}@**"}
    raise Invalid(f"which claim of {issuer.name} names the file of a pipeline is not known: set its kind", "/file")


def needed_actions(given: Stored) -> set[Action]:
    """The actions that somebody needs to give them to a pipeline."""
    return {Action.WRITE if each == STAGE else Action(each) for each in given["actions"]}


def package_of(publisher: Stored) -> str | None:
    """The name of the only package that a publisher is for; None if it is for others, too."""
    [pattern, *others] = publisher["packages"] or ["*"]
    name = re.sub(r"\[([*?[])\]", r"\1", pattern)
    return name if not others and literal(name) == pattern else None


def that_cover(publishers: Sequence[Stored], package: str) -> list[Stored]:
    """The publishers, of some, that publish a package."""
    return [each for each in publishers if covers(each["packages"], Action.WRITE, package)]


def for_package(given: PipelinePublisher, package: str) -> PipelinePublisher:
    """The publisher for one package. :raises Invalid: it names other ones"""
    if given.packages and given.packages != [literal(package)]:
        raise Invalid(f"a publisher of the package {package!r} names no other packages", "/packages")
    return msgspec.structs.replace(given, packages=[literal(package)])


def add_publisher(tx: Transaction, repository_id: int, given: PipelinePublisher, *, now_ms: int) -> Stored:
    """
    Write command: add a publisher to a hosted repository. Returns it as it is stored.

    :raises NotFound: the repository was removed; :raises Invalid: it fits every pipeline
    :raises Conflict: it is there, there are too many, or the repository is not hosted
    """
    repository = get_repository(tx, repository_id)
    check_takes_publishers(repository)
    added, every = _with(stored_in(repository), given, repository.path)
    _store(tx, repository, every, now_ms)
    return added


def remove_publisher(
    tx: Transaction,
    repository_id: int,
    id: str,
    *,
    now_ms: int,
    check: Callable[[Stored], None] = lambda _: None,
) -> Stored:
    """
    Write command: remove the publisher with this id, whose tokens end. ``check`` may refuse. Returns it.

    :raises NotFound: there is none
    """
    repository = get_repository(tx, repository_id)
    found, others = _without(stored_in(repository), id)
    check(found)
    _store(tx, repository, others, now_ms)
    return found


def add_project_publisher(tx: Transaction, project_id: int, given: PipelinePublisher, *, now_ms: int) -> Stored:
    """Write command: add a publisher to a project. Returns it as it is stored; errors as L{add_publisher}."""
    project = get_project(tx, project_id)
    added, every = _with(project.publishers, given, f"the project {project.key}")
    set_project_publishers(tx, project_id, every, now_ms=now_ms)
    return added


def remove_project_publisher(tx: Transaction, project_id: int, id: str, *, now_ms: int) -> Stored:
    """Write command: remove the publisher with this id from a project. :raises NotFound: there is none"""
    found, others = _without(get_project(tx, project_id).publishers, id)
    set_project_publishers(tx, project_id, others, now_ms=now_ms)
    return found


def _with(present: Sequence[Stored], given: PipelinePublisher, where: str) -> tuple[Stored, list[Stored]]:
    check_publisher(given, "")
    added: Stored = msgspec.to_builtins(given)
    if entry_id(added) in map(entry_id, present):
        raise Conflict(f"{where} has this publisher")
    if len(present) >= MOST_PUBLISHERS:
        raise Conflict(f"{where} has {MOST_PUBLISHERS} publishers, which are the most")
    return added, [*present, added]


def _without(present: Sequence[Stored], id: str) -> tuple[Stored, list[Stored]]:
    found = next((each for each in present if entry_id(each) == id), None)
    if found is None:
        raise NotFound("publisher", id)
    return found, [each for each in present if each is not found]


def stored_in(repository: Repository) -> list[Stored]:
    """The publishers of a repository, as they are stored."""
    return list(repository.settings.get("publishers") or ())


def described(publishers: Sequence[Stored], id: str) -> dict[str, Any]:
    """What the audit log says of the publisher with this id."""
    return {"id": id, "publishers": [dict(each) for each in publishers if entry_id(each) == id]}


def check_takes_publishers(repository: Repository) -> None:
    """:raises Conflict: nothing is published to the repository itself"""
    if repository.type is not RepositoryType.HOSTED or repository.parent is not None:
        raise Conflict(f"{repository.path} is no hosted repository: its packages are published elsewhere")


def _store(tx: Transaction, repository: Repository, publishers: Collection[Stored], now_ms: int) -> None:
    settings = {**repository.settings, "publishers": list(publishers)}
    update_repository(tx, repository.id, settings=settings, now_ms=now_ms)
