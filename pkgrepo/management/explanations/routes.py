"""The route that explains what a repository serves under the name of a package."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime

from pkgrepo.errors import Invalid, PkgrepoError
from pkgrepo.management.api.access_rules import CONTENT_READERS, VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import find_repository
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.explanations.schema import (
    ExplainedFile,
    ExplainedManifest,
    ExplainedVersion,
    ExplanationRecord,
    HiddenVersionRecord,
    LatestRecord,
    NotKnown,
    PlatformRecord,
    RoleRecord,
    ServingRecord,
    StepRecord,
    TrustRecord,
)
from pkgrepo.model import Action, File, Repository
from pkgrepo.proxy.explaining import Explainer, Explanation, FoundManifest, FoundVersion, Serving
from pkgrepo.proxy.format import Latest, LatestReason
from pkgrepo.proxy.resolving.serving import FoundFile
from pkgrepo.proxy.trace import Step, StepKind
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.format import ByFormat
from pkgrepo.repositories.policy.conditions import SERVER
from pkgrepo.repositories.policy.rules import Verdict

MOST_HIDDEN = 50  # versions in an answer


table = Table("explanations")


@table.get(
    "/explain",
    VIEWERS,
    "Explain what a repository serves under a name",
    query=(
        Parameter("repository", "The repository: its id, or storage/name; also with @ and a date, as in addresses."),
        Parameter("package", "The name of the package."),
        Parameter("at", "The date, or the time in UTC, at which it is to be explained, such as 2026-09-01."),
        Parameter("version", "A version to explain as well; of an image a tag or digest."),
        Parameter("file", "Instead, a file of the package: its path below the address of the repository."),
        Parameter("refresh", "Have what is kept of the package confirmed, at most every ten seconds.", "boolean"),
    ),
)
async def explain(call: Call) -> ExplanationRecord:
    """
    For readers of the repository: which members and routes were asked, in which order, and what they said.

    The server decides as for a client that asks for the package, and asks upstreams only if a client would make it.
    """
    repository, key = await _find(call)
    version, path = call.query("version"), call.query("file")
    if version and path:
        raise Invalid("give a version or a file", "file")
    if path:
        found = await _explainer(call).explain_file(repository, key, path)
    else:
        found = await _explain(call, repository, key, version or None, refresh=call.flag("refresh"))
    writer = _Writer(repository, await _labels(call, repository), await _edited(call, found))
    return writer.write(key, found, path)


def _explainer(call: Call) -> Explainer:
    shared, formats = call.services.shared, call.services.formats
    return Explainer(
        catalog=shared.catalog,
        clock=shared.clock,
        pools=shared.pools,
        resolver=shared.proxy.resolver,
        files=shared.proxy.package_files,
        formats=ByFormat(formats, lambda each: each.proxied),
        version_keys=ByFormat(formats, lambda each: each.version_key),
        in_turn=shared.view_turns.make,
    )


async def _explain(call: Call, repository: Repository, key: str, version: str | None, *, refresh: bool) -> Explanation:
    format_ = call.services.formats[repository.format]
    if format_.explain is not None:
        return await format_.explain(call.services.shared, repository, key, version, revalidate=refresh)
    version_key = None if version is None else format_.version_key(version)
    return await _explainer(call).explain(repository, key, version_key=version_key, revalidate=refresh)


async def verdict_on(call: Call, repository: Repository, key: str, version: str) -> Verdict | None:
    """What rules say now of a version of a package (a key), as for a client; None if it cannot be told."""
    with suppress(PkgrepoError):
        found = (await _explain(call, repository, key, version, refresh=False)).version
        return None if found is None else found.verdict
    return None


async def _find(call: Call) -> tuple[Repository, str]:
    """The repository and the key of the package, which the caller may read."""
    asked, name = call.query("repository"), call.query("package")
    if not asked or not name:
        raise Invalid("give repository and package", "repository" if not asked else "package")
    asked, _, text = asked.partition("@")
    text = call.query("at") or text
    repository = find_repository(call.registry, asked)
    key = name if repository is None else _key(call, repository, name)
    await CONTENT_READERS.check(
        call.identity,
        call.route.method,
        call.services.callers.authorizer,
        repository=repository,
        package=key,
        asked=asked,
    )
    assert repository is not None, "the check refuses what does not exist"
    call.request.repository = repository.path
    format_ = call.services.formats[repository.format]
    if format_.proxied is None and format_.explain is None:
        raise Invalid(f"packages of format {repository.format} cannot be explained", "repository")
    if format_.proxied is None and call.query("file"):
        raise Invalid("of this format packages and their versions are explained", "file")
    if text:
        shown = call.view_of(repository, text)
        repository = repository if call.query("file") else shown  # files are the same at any time
    return repository, format_.package_key(name)


def _key(call: Call, repository: Repository, name: str) -> str:
    """The key for checking permissions, which are checked before the name is."""
    try:
        return call.services.formats[repository.format].package_key(name)
    except Invalid:
        return name


async def _labels(call: Call, repository: Repository) -> list[tuple[Repository, str]]:
    """The repositories behind this one, and what they are called to the caller: by their names if lists show them."""
    behind: dict[int, Repository] = {}
    for leaf in call.shared.proxy.resolver.ways(repository):
        behind |= {each.id: each for each in (*leaf.around, leaf.repository)}
    visible = await call.services.callers.authorizer.visible(call.identity, [*behind.values()])
    named = {repository.id, *(each.id for each in visible)}
    return [
        (each, each.path if each.id in named else f"member {number}") for number, each in enumerate(behind.values())
    ]


async def _edited(call: Call, found: Explanation) -> set[int]:
    """The ids of the serving repositories whose upstreams the caller may see."""
    serving = {each.repository.id: each.repository for each in found.serving}
    if found.file is not None and not isinstance(found.file.file, File):
        serving[found.file.file.repository.id] = found.file.file.repository
    may = await call.shared.access.authorizer.may_each(
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
            repository=self._repository.address,
            package=key,
            outcome=found.outcome,
            sentence=found.why,
            steps=[self._step(each) for each in found.steps],
            serving=[self._serving(each) for each in found.serving],
            latest=None if found.latest is None else self._latest(found.latest, found.serving),
            version=None if found.version is None else self._version(found.version),
            roles=[
                RoleRecord(repository=self._label(each.repository.path), kind=each.kind, why=each.why)
                for each in found.roles
            ],
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
            rule=(SERVER if step.rule == SERVER else self._label(step.rule)) if step.rule else None,
            rule_name=step.named or None,
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
        record.hides_all = member.hides_all
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
            not_known=[
                NotKnown(
                    repository=SERVER
                    if placed.owner == SERVER
                    else self._label(placed.owner or version.repository.path),
                    rule=placed.rule.name,
                    missing=missing,
                )
                for placed, missing in version.verdict.passed
            ],
            trust=None if version.trust is None else TrustRecord.of(version.trust),
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


_STEPS = {
    StepKind.OWNED: "{repository} has the package, so no upstream is asked for it",
    StepKind.MERGED: "{repository} has the package, whose versions are served beside those of upstreams (merge_names)",
    StepKind.OWNED_INACTIVE: "{repository} has the package and is switched off; no upstream is asked for it",
    StepKind.RETIRED: "{repository} had the package until it was removed, so no upstream is asked for it",
    StepKind.NOT_OWNED: "{repository} does not have the package",
    StepKind.RESERVED: "{repository} is not asked: {pattern} is a reserved name of {rule}",
    StepKind.INACTIVE: "{repository} is not asked: it is switched off",
    StepKind.UNNEEDED: "{repository} is not asked: an earlier member has the package",
    StepKind.WITHHELD: "{repository} is not asked: an earlier member failed, and may have the package",
    StepKind.FETCHED: "route {route} of {repository} sent {package} at {at}",
    StepKind.CONFIRMED: "route {route} of {repository} confirmed at {at} what it sent at {fetched_at}",
    StepKind.ABSENT: "route {route} of {repository} said at {at} that it does not have {package}",
    StepKind.ASKED: "route {route} of {repository} has no index of {package} and was asked at {at} for {reason}",
    StepKind.FAILED: "route {route} of {repository} failed at {at}: {reason}",
    StepKind.DENIED: "route {route} of {repository} refused {package} at {at}, and nothing else is asked: {reason}",
    StepKind.HIDDEN: "{versions} of {repository} {are} younger than the {days:g} days that {rule} asks for",
    StepKind.LATER: "{versions} of {repository} {were} published after {at}",
    StepKind.UNKNOWN: "of the past of {repository} it is not known {reason}",
    StepKind.BLOCKED: "{versions} of {repository} {are} blocked by {rule_name!r} of {rule}",
    StepKind.QUARANTINED: "{versions} of {repository} {are} held in quarantine by {rule_name!r} of {rule}",
    StepKind.FILE_KEPT: "{repository} keeps the file",
    StepKind.GONE: "no route of {repository} has {package} any more; what is kept of it is served until {fresh_until}",
    StepKind.FILE_LISTED: "route {route} of {repository} has the file; it is fetched when a client asks for it",
    StepKind.FILE_UNLISTED: "{repository} does not have the file",
    StepKind.FILE_REMOVED: "no upstream of {repository} lists the file any more; policy.keep_removed has it served",
    StepKind.FILE_REFUSED: "{reason}",
    StepKind.UNSIGNED: "{repository} has {package}, and no trusted key has signed it",
}
_UNNEEDED_ROUTE = "route {route} of {repository} is not asked: its packages have other names"
_WITHHELD_ROUTE = "route {route} of {repository} is not asked: an earlier route failed, and may have {package}"
_UNDATED = "of {versions} of {repository} nothing says when {those} published"
_MANIFESTS = {  # of steps about a manifest
    StepKind.FETCHED: "route {route} of {repository} sent {package} at {at}, which is {digest}",
    StepKind.CONFIRMED: "route {route} of {repository} said at {at} that {package} is {digest}, which is kept",
    StepKind.FILE_KEPT: "{repository} keeps {package}",
    StepKind.BLOCKED: "{package} of {repository} is {digest}, which is blocked by {rule_name!r} of {rule}",
    StepKind.QUARANTINED: "{package} of {repository} is {digest}, held in quarantine by {rule_name!r} of {rule}",
    StepKind.HIDDEN: "{package} of {repository} is {digest}, known for less than the {days:g} days of {rule}",
}
_KEPT = {  # by whether an upstream has the package
    (StepKind.CACHED, True): "{repository} uses what route {route} said at {at}, which is fresh until {fresh_until}",
    (StepKind.CACHED, False): "{repository} remembers until {fresh_until} that no route has the package",
    (StepKind.STALE, True): "{repository} goes on using what route {route} said at {at}",
    (StepKind.STALE, False): "{repository} knows only that no route had the package at {at}",
}
_LATEST = {
    LatestReason.TAG: "{repository} tags {version} as latest",
    LatestReason.REPLACED: "{repository} tags {hidden} as latest, which a rule hides; {version} is the next one below",
    LatestReason.HIGHEST: "{version} is the highest final version that is not withdrawn, if there is one",
}


def step_sentence(step: StepRecord) -> str:
    """What a step means."""
    template = _MANIFESTS.get(step.step) if step.digest is not None else None
    if step.step is StepKind.WITHHELD and step.route is not None:
        template = _WITHHELD_ROUTE
    if step.step is StepKind.UNNEEDED and step.route is not None:
        template = _UNNEEDED_ROUTE
    if step.step is StepKind.LATER and step.reason is not None:
        template = _UNDATED
    return _format(template or _STEPS.get(step.step) or _KEPT[step.step, step.route is not None], step)


def latest_sentence(latest: LatestRecord) -> str:
    """Why a version is the latest one."""
    return _format(_LATEST[latest.reason], latest)


def served_sentence(record: ExplanationRecord) -> str:
    """What a client gets that is not refused."""
    if record.manifest is not None:
        platforms = ", ".join(each.platform for each in record.manifest.platforms)
        ending = f", for {platforms}" if platforms else ""
        return f"{record.manifest.repository} serves {record.manifest.reference} as {record.manifest.digest}{ending}"
    if record.file is not None:
        return f"{record.file.repository} serves the file"
    if record.version is not None and not record.version.hidden:
        return f"{record.version.repository} serves version {record.version.version}"
    if record.version is not None:
        opens = f"until {_text(record.version.opens_at)}" if record.version.opens_at else "since its age is not known"
        return f"version {record.version.version} of {record.version.repository} is hidden {opens}"
    return f"served by {' and '.join(each.repository for each in record.serving)}"


def _format(template: str, record: StepRecord | LatestRecord) -> str:
    values = {name: _text(getattr(record, name)) for name in record.__struct_fields__}
    one = values.get("hidden_count") == 1
    return template.format(
        package=values.get("what") or "the package",
        versions="1 version" if one else f"{values.get('hidden_count')} versions",
        are="is" if one else "are",
        were="was" if one else "were",
        those="it was" if one else "they were",
        **values,
    )


def _text(value: object) -> object:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else value
