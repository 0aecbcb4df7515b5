"""
Runs of retention: the preview, and the removal of what it lists.

A preview reads the packages page by page and decides; nothing is kept of a page but its first victims and sums. A run
makes the same plan first: a greater part than ``max_delete_percent`` waits for confirmation. Then each package with
victims is decided again and changed by one transaction, so that readers never see half of it, and so that what was
published, tagged or downloaded meanwhile counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from attrs import Factory, define

from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Repository, RepositoryType
from pkgrepo.repositories.configuration import Retention
from pkgrepo.repositories.context import MaintenanceContext, MaintenanceWork
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.images.cached import evict_manifest
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.package_changes import EVICTED, remove_files
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.retention.images import plan_images, remove_images
from pkgrepo.repositories.retention.rules import Rules, together
from pkgrepo.repositories.retention.versions import Plan, Victim, plan_versions, remove_planned
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.retained import PackageName, page_of_names
from pkgrepo.storage.catalog.server.trash import FOR_GOOD, Disposal


def evict_planned(
    tx: Transaction,
    repository: Repository,
    format_: StoredFormat,
    package_key: str,
    victims: Sequence[Victim],
    actor: Actor,
    now_ms: int,
) -> None:
    """Evict what a plan, made in this transaction, has of a package. No name is burned."""
    for each in victims:
        if format_.versions is None:
            with suppress(NotFound):  # the image went with its last manifest
                evict_manifest(tx, repository, package_key, each.key, actor, now_ms)
        else:
            paths = list(each.paths) or None
            place = repository, package_key, each.key, paths
            remove_files(tx, *place, actor, format_.index, False, now_ms, kind=EVICTED)


KIND: Final = "retention"  # of the jobs; their key is the id of the repository
PAGE: Final = 200  # packages of one query; with ten versions each some ten milliseconds of a reader thread
LISTED: Final = 200  # victims that the row of a job has
FAILED: Final = 20  # packages whose errors it has


@define
class Report:
    """
    What goes, or has gone: ``count`` of ``examined`` versions, builds, tags and manifests, of ``size`` bytes.

    ``victims`` are the first of them. With ``waiting`` nothing was removed, because they are more than the limit.
    ``removed`` and ``freed`` count what was removed; ``errors`` are sentences about packages that could not be changed.
    """

    examined: int = 0
    count: int = 0
    size: int = 0
    percent: float = 0.0
    waiting: bool = False
    removed: int = 0
    freed: int = 0
    victims: list[Victim] = Factory(list)
    errors: list[str] = Factory(list)

    def to_json(self, retention: Retention, *, dry_run: bool) -> dict[str, Any]:
        """Return the form in which the API shows it, and the job's row stores it."""
        too_many = self.count > 0 and self.percent > retention.max_delete_percent
        return {
            "dry_run": dry_run,
            "victims": [
                {
                    "package": each.package,
                    "version": each.name,
                    "action": each.action,
                    "rule": each.rule,
                    "reason": each.reason,
                    "size": each.size,
                }
                for each in self.victims
            ],
            "truncated": len(self.victims) < self.count,
            "count": self.count,
            "examined": self.examined,
            "percent": self.percent,
            "bytes": self.size,
            "max_delete_percent": retention.max_delete_percent,
            "needs_confirmation": self.waiting or (dry_run and too_many),
            "removed": self.removed,
            "freed_bytes": self.freed,
            "errors": self.errors,
        }


def retention_of(repository: Repository, registry: Registry) -> Retention | None:
    """The retention of a repository with that of the server, or None where nothing goes by itself."""
    if repository.type is RepositoryType.VIRTUAL or repository.parent is not None:
        return None
    own, server = repository.settings.get("retention"), registry.retention
    return together(
        None if own is None else msgspec.convert(own, Retention),
        None if server is None else msgspec.convert(server, Retention),
        cached=repository.type is RepositoryType.PROXY,
    )


class RetentionWork(MaintenanceWork):
    """Previews and runs of retention in hosted repositories and the caches of proxies."""

    def __init__(self, context: MaintenanceContext, content: ContentWriter) -> None:
        super().__init__(context)
        self._formats = context.formats
        self._content = content

    async def preview(
        self, repository: Repository, retention: Retention, progress: Progress, *, limit: int = LISTED
    ) -> Report:
        """
        What a run would remove; the report lists up to ``limit`` victims.

        :raises Invalid: a rule cannot be applied to this format
        """
        report, _ = await self._plan(repository, retention, progress, limit)
        return report

    async def run(
        self, repository: Repository, retention: Retention, actor: Actor, confirmed: bool, progress: Progress
    ) -> Mapping[str, Any]:
        """
        Remove what the rules select, in the form in which a job stores its result.

        More than ``max_delete_percent`` only if it is ``confirmed``. A package that cannot be changed is left as it is.

        :raises Invalid: a rule cannot be applied to this format
        """
        report, affected = await self._plan(repository, retention, progress, LISTED)
        report.waiting = report.count > 0 and report.percent > retention.max_delete_percent and not confirmed
        if report.waiting:
            return report.to_json(retention, dry_run=False)
        format_ = self._formats[repository.format]
        progress.begin(f"packages of {repository.path} that change", len(affected))
        for key in affected:
            try:
                done = await self._content.change(remove_selected, repository, key, retention, format_, actor)
            except NotFound:
                pass  # the package was removed meanwhile
            except PkgrepoError as error:
                if len(report.errors) < FAILED:
                    report.errors.append(f"{key}: {error}")
            else:
                report.removed += len(done)
                report.freed += sum(each.size for each in done)
            progress.step()
        progress.end()
        return report.to_json(retention, dry_run=False)

    async def _plan(
        self, repository: Repository, retention: Retention, progress: Progress, limit: int
    ) -> tuple[Report, list[str]]:
        """The report, and the keys of the packages that would change."""
        report, affected, after = Report(), list[str](), ""
        format_, now_ms = self._formats[repository.format], self._clock.now_ms()
        rules = rules_for(repository, retention, format_, now_ms)
        progress.begin(f"packages of {repository.path}", repository.package_count)
        while page := await self._catalog.scan(page_of_names, repository.id, after, PAGE):
            plan: Plan = await self._catalog.scan(make_plan, repository, page, rules, format_, now_ms)
            report.examined += plan.examined
            report.count += len(plan.victims)
            report.size += sum(each.size for each in plan.victims)
            report.victims += plan.victims[: max(0, limit - len(report.victims))]
            affected += dict.fromkeys(each.package_key for each in plan.victims)
            after = page[-1].key
            progress.step(len(page))
        progress.end()
        report.percent = round(100 * report.count / report.examined, 1) if report.examined else 0.0
        return report, affected


def rules_for(repository: Repository, retention: Retention, format_: StoredFormat, now_ms: int) -> Rules:
    """The rules of a repository, ready to decide. :raises Invalid: one of them cannot be applied to this format"""
    cached = repository.type is RepositoryType.PROXY
    return Rules(retention, format_.versions, now_ms, ranges=format_.ranges, cached=cached)


def make_plan(
    r: Reader,
    repository: Repository,
    some: Sequence[PackageName],
    rules: Rules,
    format_: StoredFormat,
    now_ms: int,
) -> Plan:
    """What goes of some packages."""
    if format_.versions is None:
        return plan_images(r, repository, some, rules, now_ms)
    return plan_versions(r, repository, some, rules, format_.versions)


def remove_selected(
    tx: Transaction,
    repository: Repository,
    package_key: str,
    retention: Retention,
    format_: StoredFormat,
    actor: Actor,
    now_ms: int,
) -> tuple[Victim, ...]:
    """
    The write command: decide about one package again, and remove what goes. Returns that.

    :raises NotFound: there is no such package
    """
    package = packages.find_package(tx, repository.id, package_key)
    if package is None:
        raise NotFound("package", package_key)
    rules = rules_for(repository, retention, format_, now_ms)
    plan = make_plan(tx, repository, [PackageName(package.id, package.key, package.name)], rules, format_, now_ms)
    if rules.cached:
        evict_planned(tx, repository, format_, package_key, plan.victims, actor, now_ms)
    elif plan.victims:
        names = ", ".join(dict.fromkeys(each.rule for each in plan.victims if each.action != "delete"))
        kept = Disposal(entry=str(uuid.uuid4()), reason=f"retention: {names}")
        disposals = {"trash": kept, "delete": FOR_GOOD, "untag": kept}
        if format_.versions is None:
            remove_images(tx, repository, package_key, plan.victims, disposals, actor, now_ms)
        else:
            remove_planned(tx, repository, format_, package_key, plan.victims, disposals, actor, now_ms)
    return plan.victims
