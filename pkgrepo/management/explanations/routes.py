"""The route that explains what a repository serves under the name of a package."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import IExplainingFormat, IIndexedFormat
from pkgrepo.management.api.access_rules import CONTENT_READERS, VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.names import find_repository
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Action, File, Identity, Repository
from pkgrepo.proxy.explaining import Explainer, Explanation, FoundManifest, FoundVersion, Serving
from pkgrepo.proxy.resolving.found_files import FoundFile
from pkgrepo.proxy.resolving.members import Latest
from pkgrepo.proxy.trace import Step
from pkgrepo.repositories.clock import from_ms

from .schema import (
    ExplainedFile,
    ExplainedManifest,
    ExplainedVersion,
    ExplanationRecord,
    HiddenVersionRecord,
    LatestRecord,
    PlatformRecord,
    ServingRecord,
    StepRecord,
)
from .sentences import latest_sentence, served_sentence, step_sentence

MOST_HIDDEN = 50  # versions in an answer


class Explanations(Handlers):
    """Explains packages of formats whose packages have index documents, and of those that explain theirs."""

    table = Table("explanations")

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        shared = services.shared
        self._formats = services.formats
        self._indexed = {name: each for name, each in services.formats.items() if IIndexedFormat.providedBy(each)}
        self._explainer = Explainer(
            catalog=shared.catalog,
            clock=shared.clock,
            pools=shared.pools,
            resolver=shared.proxy.resolver,
            files=shared.proxy.package_files,
            formats=self._formats,
            indexed=self._indexed,
        )

    @table.route(
        "GET",
        "/explain",
        access=VIEWERS,
        summary="Explain what a repository serves under a name",
        answer=ExplanationRecord,
        query=(
            Parameter("repository", "The repository: its id, or storage/name."),
            Parameter("package", "The name of the package."),
            Parameter("version", "A version to explain as well; of an image a tag or digest."),
            Parameter("file", "Instead, a file of the package: its path below the address of the repository."),
            Parameter("refresh", "Have what is kept of the package confirmed, at most every ten seconds.", "boolean"),
        ),
    )
    async def explain(self, call: Call) -> ExplanationRecord:
        """
        For readers of the repository: which members and routes were asked, in which order, and what they said.

        The server decides as for a client that asks for the package, and asks upstreams only if a client would make it.
        """
        repository, key = await self._find(call)
        version, path = call.query("version"), call.query("file")
        if version and path:
            raise Invalid("give a version or a file", "file")
        if path:
            found = await self._explainer.explain_file(repository, key, path)
        else:
            found = await self._explain(repository, key, version or None, refresh=call.flag("refresh"))
        writer = _Writer(repository, await self._labels(call.identity, repository), await self._edited(call, found))
        return writer.write(key, found, path)

    async def _explain(self, repository: Repository, key: str, version: str | None, *, refresh: bool) -> Explanation:
        format_ = self._formats[repository.format]
        if IExplainingFormat.providedBy(format_):
            services = self._services.shared
            explained: Explanation = await format_.explain(services, repository, key, version, revalidate=refresh)
            return explained
        version_key = None if version is None else format_.version_key(version)
        return await self._explainer.explain(repository, key, version_key=version_key, revalidate=refresh)

    async def _find(self, call: Call) -> tuple[Repository, str]:
        """The repository and the key of the package, which the caller may read."""
        asked, name = call.query("repository"), call.query("package")
        if not asked or not name:
            raise Invalid("give repository and package", "repository" if not asked else "package")
        repository = find_repository(self._registry, asked)
        key = name if repository is None else self._key(repository, name)
        await CONTENT_READERS.check(
            call.identity,
            call.route.method,
            self._services.authorizer,
            repository=repository,
            package=key,
            asked=asked,
        )
        assert repository is not None, "the check refuses what does not exist"
        call.request.repository = repository.path
        explains = IExplainingFormat.providedBy(self._formats[repository.format])
        if not (repository.format in self._indexed or explains):
            raise Invalid(f"packages of format {repository.format} cannot be explained", "repository")
        if repository.format not in self._indexed and call.query("file"):
            raise Invalid("of this format packages and their versions are explained", "file")
        return repository, self._formats[repository.format].package_key(name)

    def _key(self, repository: Repository, name: str) -> str:
        """The key for checking permissions, which are checked before the name is."""
        try:
            key: str = self._services.formats[repository.format].package_key(name)
        except Invalid:
            return name
        return key

    async def _labels(self, identity: Identity, repository: Repository) -> list[tuple[Repository, str]]:
        """The repositories behind this one, and what they are called to the caller."""
        behind: dict[int, Repository] = {}
        for leaf in self._services.shared.proxy.resolver.ways(repository):
            behind |= {each.id: each for each in (*leaf.around, leaf.repository)}
        labels = []
        for number, each in enumerate(behind.values()):
            known = each.id == repository.id or await self._services.shared.access.knows(identity, each)
            labels.append((each, each.path if known else f"member {number}"))
        return labels

    async def _edited(self, call: Call, found: Explanation) -> set[int]:
        """The ids of the serving repositories whose upstreams the caller may see."""
        serving = {each.repository.id: each.repository for each in found.serving}
        if found.file is not None and not isinstance(found.file.file, File):
            serving[found.file.file.repository.id] = found.file.file.repository
        may = await self._services.shared.access.may_each(
            call.identity, [(Action.EDIT, each, None) for each in serving.values()]
        )
        return {each for each, allowed in zip(serving, may, strict=True) if allowed}


class _Writer:
    """Makes the record of an explanation. ``labels`` are what repositories are called in it."""

    def __init__(
        self, repository: Repository, labels: Sequence[tuple[Repository, str]], edited: Collection[int]
    ) -> None:
        self._repository = repository
        self._labels = {each.path: label for each, label in labels}
        self._paths = {each.id: each.path for each, _ in labels}
        self._edited = edited

    def write(self, key: str, found: Explanation, path: str) -> ExplanationRecord:
        """The record about the package with this key; ``path`` is that of the file that was asked about, if any."""
        record = ExplanationRecord(
            repository=self._repository.path,
            package=key,
            outcome=found.outcome,
            sentence=found.why,
            steps=[self._step(each) for each in found.steps],
            serving=[self._serving(each) for each in found.serving],
            latest=None if found.latest is None else self._latest(found.latest, found.serving),
            version=None if found.version is None else self._version(found.version),
            file=None if found.file is None else self._file(found.file, path),
            manifest=None if found.manifest is None else self._manifest(found.manifest),
        )
        record.sentence = record.sentence or served_sentence(record)
        return record

    def _label(self, path: str) -> str:
        return self._labels.get(path, "another member")

    def _step(self, step: Step) -> StepRecord:
        newest = sorted(step.hidden, key=lambda each: -(each.published_ms or 0))[:MOST_HIDDEN]
        record = StepRecord(
            step=step.step,
            sentence="",
            repository=self._label(step.repository),
            route=step.route or None,
            at=_time(step.at_ms),
            fetched_at=_time(step.fetched_ms),
            fresh_until=_time(step.fresh_until_ms),
            reason=step.why or None,
            rule=self._label(step.rule) if step.rule else None,
            pattern=step.pattern or None,
            days=step.days,
            hidden=[
                HiddenVersionRecord(
                    version=each.version, published_at=_time(each.published_ms), opens_at=_time(each.opens_ms)
                )
                for each in newest
            ],
            hidden_count=len(step.hidden),
            path=step.path or None,
            what=step.what or None,
            digest=step.digest or None,
        )
        record.sentence = step_sentence(record)
        return record

    def _serving(self, member: Serving) -> ServingRecord:
        repository, document = member.repository, member.document
        record = ServingRecord(repository=self._label(repository.path), type=repository.type, stale=member.stale)
        record.fresh_until = _time(member.fresh_until_ms)
        if document is not None:
            record.route = document.route
            record.url = document.url if repository.id in self._edited else None
            record.fetched_at = _time(document.fetched_ms)
            record.confirmed_at = _time(document.checked_ms)
        return record

    def _manifest(self, found: FoundManifest) -> ExplainedManifest:
        return ExplainedManifest(
            reference=found.reference,
            repository=self._label(found.repository.path),
            digest=found.digest,
            media_type=found.media_type,
            size=found.size,
            first_seen_at=_time(found.seen_ms),
            platforms=[
                PlatformRecord(platform=each.name, digest=each.digest, kept=each.kept) for each in found.platforms
            ],
        )

    def _latest(self, latest: Latest, serving: Sequence[Serving]) -> LatestRecord:
        record = LatestRecord(version=latest.version, reason=latest.reason, sentence="", hidden=latest.hidden or None)
        if latest.member is not None:
            record.repository = self._label(serving[latest.member].repository.path)
        record.sentence = latest_sentence(record)
        return record

    def _version(self, version: FoundVersion) -> ExplainedVersion:
        return ExplainedVersion(
            version=version.text,
            repository=self._label(version.repository.path),
            published_at=_time(version.published_ms),
            first_seen=version.first_seen,
            hidden=version.hidden,
            opens_at=_time(version.opens_ms),
        )

    def _file(self, found: FoundFile, path: str) -> ExplainedFile:
        file = found.file
        if isinstance(file, File):
            return ExplainedFile(path=path, repository=self._label(self._paths[file.repository_id]), kept=True)
        shown = file.repository.id in self._edited
        return ExplainedFile(
            path=path,
            repository=self._label(file.repository.path),
            kept=False,
            route=file.route,
            url=file.source.url if shown else None,
        )


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)
