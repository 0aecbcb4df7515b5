"""
The exchange of a pipeline's identity token for a token of this server (trusted publishing).

The issued token is for the packages and actions of the publishers that recognise the pipeline, in the repositories that
the request is about, and for ``LIFETIME_S``. An identity token is exchanged once, whichever process or node is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from attrs import field, frozen

from pkgrepo.auth.permissions.format_rights import rights_of
from pkgrepo.auth.permissions.ownership import read_owner
from pkgrepo.auth.permissions.publishers import claim_text, iter_publishers, publisher_id, recognises
from pkgrepo.auth.tokens.limits import covers, literal
from pkgrepo.auth.tokens.text import hash_token, make_token, shown_part
from pkgrepo.errors import IdentityRefused, ReadOnly
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import (
    Action,
    Actor,
    Pipeline,
    Project,
    Repository,
    RepositoryScope,
    RepositoryType,
    Token,
    TokenKind,
    TokenLimits,
)
from pkgrepo.proxy.virtual import publish_targets
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.people.pipelines import add_pipeline_token, remove_old_pipeline_tokens
from pkgrepo.storage.catalog.people.projects import list_bindings, projects_with_publishers
from pkgrepo.storage.catalog.server.audit import Entry, append_entry

from .identity_tokens import SKEW_S, IdentityToken
from .issuers import Issuer, Issuers
from .provenance import COMPARED
from .publishers import Stored, is_anybody, needed_actions

LIFETIME_S: Final = 900  # seconds
READING: Final = frozenset({Action.READ})
MOST_NAME: Final = 160  # characters of a pipeline's name
MOST_CLAIM: Final = 300  # characters of a claim in the audit log
MOST_KEPT: Final = 1000  # characters of a claim that a token keeps
MOST_CLAIMS: Final = 60  # of a token in the audit log; forges have about 30

# Claims that name the source repository, and the definition of the pipeline in it, of the forges that have any.
_SOURCES: Final = ("repository", "project_path", "oidc.circleci.com/vcs-origin", "oidc.circleci.com/project-id", "sub")
_DEFINITIONS: Final = ("job_workflow_ref", "workflow_ref", "ci_config_ref_uri", "workflow")
_FILE: Final = re.compile(r"([^/@]+)(?:@.*)?$")


@frozen
class IssuedToken:
    """A new token, for the response; ``repositories`` are those that it is for."""

    text: str = field(repr=False)
    expires_at: datetime
    repositories: Sequence[Repository]


@frozen
class _Match:
    repository: Repository
    publisher: Mapping[str, Any]
    project: Project | None = None


class PipelineTokens:
    """
    Exchanges identity tokens. ``copy_entry`` is called with each row of the audit log once it is durable.

    Without issuers in the settings nothing is exchanged.
    """

    def __init__(
        self,
        issuers: Issuers,
        *,
        catalog: ICatalog,
        registry: Registry,
        clock: Clock,
        copy_entry: Callable[[Entry], None],
    ) -> None:
        self.issuers = issuers
        self._catalog = catalog
        self._registry = registry
        self._clock = clock
        self._copy_entry = copy_entry

    async def exchange(
        self, text: str, repositories: Iterable[Repository], actor: Actor, *, package: str | None = None
    ) -> IssuedToken:
        """
        A token for what the publishers of these repositories allow the pipeline; with ``package`` for that key alone.

        ``actor`` has the address and the id of the request.

        :raises IdentityRefused: the identity token is not valid, was exchanged before, or fits no publisher
        :raises IssuerUnavailable: the identity token cannot be verified now
        """
        if not self.issuers:
            raise IdentityRefused("this server has no issuers of identity tokens (auth.issuers)", "not-enabled")
        asked = list(repositories)
        projects = await self._catalog.look(projects_with_publishers)
        issuer, token = await self.issuers.verify(text, self._audiences(projects))
        matches = _matches(issuer, token, asked, package)
        matches += await self._matches_of_projects(issuer, token, asked, package, projects)
        if not matches:
            about = "" if package is None else f" for the package {package!r}"
            raise IdentityRefused(
                f"no publisher here{about} fits the identity token of {issuer.name!r} with the subject "
                f"{token.subject[:MOST_CLAIM]!r}",
                "invalid-publisher",
            )
        pipeline = Pipeline(
            name=name_pipeline(issuer.name, token.claims),
            issuer=issuer.name,
            subject=token.subject[:MOST_CLAIM],
            publishers=frozenset(publisher_id(each.publisher) for each in matches if each.project is None),
            projects=frozenset(publisher_id(each.publisher) for each in matches if each.project is not None),
            claims={
                each: kept[:MOST_KEPT] for each in COMPARED if (kept := claim_text(token.claims.get(each))) is not None
            },
        )
        now_ms = self._clock.now_ms()
        expires_at = datetime.fromtimestamp(now_ms // 1000 + LIFETIME_S, UTC)
        limits = TokenLimits(
            # clients look at the address to which they publish, which may be that of a virtual repository
            repositories=(
                *(_scope(each, package) for each in matches),
                *(
                    RepositoryScope(literal(each.path), READING)
                    for each in asked
                    if each.type is RepositoryType.VIRTUAL
                ),
            ),
            expires_at=expires_at,
        )
        issued = make_token(TokenKind.CI)
        entry = await self._catalog.write(_exchange, token, issued, limits, pipeline, actor, now_ms)
        if entry is None:
            raise IdentityRefused("the identity token was exchanged before: ask for a new one", "invalid-reuse-token")
        self._copy_entry(entry)
        return IssuedToken(
            issued, expires_at, list({each.repository.uid: each.repository for each in matches}.values())
        )

    def of_format(self, format: str) -> list[Repository]:
        """The hosted repositories of a format, for requests that name none."""
        return [
            each for each in self._registry.listed() if each.format == format and each.type is RepositoryType.HOSTED
        ]

    def behind(self, repository: Repository) -> list[Repository]:
        """The repositories that take what is published at the address of a repository."""
        with suppress(ReadOnly):
            return [repository, *publish_targets(self._registry, repository)]
        return [repository]

    async def _matches_of_projects(
        self,
        issuer: Issuer,
        token: IdentityToken,
        repositories: Sequence[Repository],
        package: str | None,
        projects: Sequence[Project],
    ) -> list[_Match]:
        """What publishers of projects allow where these own packages, or own ``package``."""
        recognised = {
            each.id: [publisher for publisher in each.publishers if _fits(publisher, issuer, token, package)]
            for each in projects
        }
        owners = {each.id: each for each in projects if recognised[each.id]}
        found: list[_Match] = []
        for repository in {each.uid: each for each in repositories if _takes(each)}.values() if owners else ():
            if package is not None:
                owner = await self._catalog.look(read_owner, repository, package)
                own = set() if owner is None else {owner.id} & owners.keys()
            elif rights_of(repository.format).project_key is not None:  # a project owns images by its key
                own = set(owners)
            else:
                bound = await self._catalog.look(list_bindings, repository_id=repository.id)
                own = {each.project_id for each in bound} & owners.keys()
            found += [_Match(repository, each, owners[key]) for key in sorted(own) for each in recognised[key]]
        return found

    def _audiences(self, projects: Sequence[Project]) -> set[str]:
        """
        The audiences that publishers have of their own: those of all repositories, so that the refusal of a token does
        not tell what the repositories that it is for have.
        """
        of_repositories = (each for repository in self._registry.listed() for each in iter_publishers(repository))
        of_projects = (each for project in projects for each in project.publishers)
        return {found for each in (*of_repositories, *of_projects) if (found := each.get("audience"))}

    async def refresh(self) -> None:
        """Let the repositories, and their publishers, be those of now."""
        await self._registry.refresh()

    async def change(self, entry: Entry, *commands: Callable[[Transaction, int], Stored]) -> list[Stored]:
        """Change the publishers of a repository, with one row in the audit log. Returns what the commands return."""
        now_ms = self._clock.now_ms()

        def run(tx: Transaction) -> list[Stored]:
            changed = [command(tx, now_ms) for command in commands]
            append_entry(tx, entry, now_ms)
            return changed

        changed: list[Stored] = await self._catalog.write(run)
        self._copy_entry(entry)
        await self._registry.refresh()
        return changed

    async def remove_old(self) -> None:
        """Remove the rows of tokens that expired long ago."""
        await self._catalog.write(remove_old_pipeline_tokens, now_ms=self._clock.now_ms())


def name_pipeline(issuer: str, claims: Mapping[str, Any]) -> str:
    """The name of a pipeline for people, such as ``pipeline release.yml of acme/widget (github)``."""
    source = next((found for each in _SOURCES if (found := claim_text(claims.get(each)))), "")
    definition = next((found for each in _DEFINITIONS if (found := claim_text(claims.get(each)))), "")
    file = _FILE.search(definition.partition("@")[0])
    name = f"pipeline {file[1]} of {source}" if file else f"pipeline of {source}"
    printable = "".join(each for each in name if each.isprintable())
    return f"{printable[:MOST_NAME]} ({issuer})"


def _matches(
    issuer: Issuer, token: IdentityToken, repositories: Iterable[Repository], package: str | None
) -> list[_Match]:
    return [
        _Match(repository, publisher)
        for repository in {each.uid: each for each in repositories}.values()
        if _takes(repository)
        for publisher in iter_publishers(repository)
        if _fits(publisher, issuer, token, package)
    ]


def _takes(repository: Repository) -> bool:
    return repository.type is RepositoryType.HOSTED and repository.active and repository.parent is None


def _fits(publisher: Mapping[str, Any], issuer: Issuer, token: IdentityToken, package: str | None) -> bool:
    covered = package is None or covers(publisher["packages"], Action.WRITE, package)
    # one that came by the configuration file was not refused when it was made
    return (
        covered
        and not is_anybody(issuer, publisher)
        and recognises(publisher, issuer.name, token.claims, issuer.audiences)
    )


def _scope(match: _Match, package: str | None) -> RepositoryScope:
    actions = READING | needed_actions(match.publisher)
    packages = match.publisher["packages"] if package is None else [literal(package)]
    return RepositoryScope(literal(match.repository.path), actions, tuple(packages))


def _exchange(
    tx: Transaction,
    token: IdentityToken,
    text: str,
    limits: TokenLimits,
    pipeline: Pipeline,
    actor: Actor,
    now_ms: int,
) -> Entry | None:
    """Write command: add the token with its row of the audit log; None if the identity token was exchanged before."""
    added: Token | None = add_pipeline_token(
        tx,
        digest=token.digest,
        identity_expires_ms=(token.expires_at + SKEW_S) * 1000 + 1000,
        hash=hash_token(text),
        shown=shown_part(text),
        limits=limits,
        pipeline=pipeline,
        created_from=actor.address,
        now_ms=now_ms,
    )
    if added is None:
        return None
    claims = {name: found for name, value in token.claims.items() if (found := claim_text(value)) is not None}
    entry = Entry(
        Actor(added.user_id, pipeline.name, added.id, actor.address, actor.request_id),
        "pipeline.token",
        pipeline.name,
        detail={
            "issuer": pipeline.issuer,
            "token": added.shown,
            "claims": {name[:MOST_CLAIM]: claims[name][:MOST_CLAIM] for name in sorted(claims)[:MOST_CLAIMS]},
            "repositories": [
                {"repository": each.repository, "actions": sorted(each.actions), "packages": list(each.packages)}
                for each in limits.repositories
            ],
        },
    )
    append_entry(tx, entry, now_ms)
    return entry
