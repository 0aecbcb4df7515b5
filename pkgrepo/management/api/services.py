"""The collaborators and settings of the management API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

from attrs import frozen

from pkgrepo.auth.accounts import Accounts
from pkgrepo.auth.external_accounts import DailyCheck
from pkgrepo.auth.login.authenticator import Authenticator
from pkgrepo.auth.login.directories import Directories
from pkgrepo.auth.login.passwords import Passwords
from pkgrepo.auth.login.second_factors import SecondFactors
from pkgrepo.auth.login.sessions import BrowserSessions
from pkgrepo.auth.login.throttle import Throttle
from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.auth.tokens.bearer import BearerTokens
from pkgrepo.auth.tokens.canaries import CanaryRings
from pkgrepo.auth.tokens.uses import TokenUses
from pkgrepo.concurrency.late import Late
from pkgrepo.gateway.callers.access import Access
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.services import Services
from pkgrepo.management.api.audit_log import AuditLog
from pkgrepo.oidc.documents import Documents
from pkgrepo.oidc.pipelines import PipelineTokens
from pkgrepo.oidc.sign_on import SignOn
from pkgrepo.proxy.purge import CachePurge
from pkgrepo.repositories.advisories.refresh import AdvisoryRefresh
from pkgrepo.repositories.backup.runs import BackupRuns
from pkgrepo.repositories.companions import Companions
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.publish.package_changes import ChangeListener
from pkgrepo.repositories.retention.run import RetentionWork
from pkgrepo.repositories.upkeep.gc import GarbageCollector
from pkgrepo.repositories.upkeep.imports import StartsImports
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.repositories.upkeep.mending import Mender
from pkgrepo.repositories.upkeep.mirrors import StartsMirrors
from pkgrepo.repositories.upkeep.twins import Twins
from pkgrepo.storage.buckets import StorageBuckets
from pkgrepo.storage.folders import StorageFolders
from pkgrepo.storage.secret_box import SecretBox
from pkgrepo.webhooks.feed import EventFeed
from pkgrepo.webhooks.poster import Poster
from pkgrepo.webhooks.sender import WebhookSender


@frozen
class Histogram:
    """How many durations were up to each of ``bounds`` (seconds), and above the one before; the last count: longer."""

    bounds: Sequence[float]
    counts: Sequence[int]

    @property
    def total(self) -> int:
        """The number of durations."""
        return sum(self.counts)

    def quantile(self, part: float) -> float | None:
        """
        The least bound, in seconds, that this part of the durations did not exceed.

        The highest bound if they exceeded that; None without any.
        """
        wanted = part * self.total
        for bound, reached in zip(self.bounds, accumulate(self.counts), strict=False):
            if reached and reached >= wanted:
                return bound
        return self.bounds[-1] if self.total else None

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(self.bounds, [a + b for a, b in zip(self.counts, other.counts, strict=True)])


@frozen(kw_only=True)
class Identification:
    """Authentication, authorisation and the audit log; ``directories`` check passwords, see L{IDirectory}."""

    bearer: BearerTokens
    uses: TokenUses
    canaries: CanaryRings
    authenticator: Authenticator
    second_factors: SecondFactors
    throttle: Throttle
    authorizer: Authorizer
    sessions: BrowserSessions
    access: Access
    accounts: Accounts
    audit_log: AuditLog
    passwords: Passwords
    documents: Documents
    pipelines: PipelineTokens
    sign_on: SignOn
    daily_check: DailyCheck
    directories: Sequence[Any]
    directory_logins: Directories


@frozen(kw_only=True)
class Events:
    """What tells other programs of events; ``source`` is the name of this server in them."""

    source: str
    poster: Poster
    sender: WebhookSender
    feed: EventFeed


@frozen(kw_only=True)
class ManagementServices:
    """
    The services of the management API: those that it shares with the formats (``shared``), and its own.

    ``callers`` identifies who calls, and says what they may. ``formats`` are by name. ``on_change`` is called with each
    repository that was added, changed or removed.

    With ``open_install`` anyone may make the first admin. ``starter_upstreams`` are addresses for the starter set, by
    format. The server is degraded while the disk of a storage, or of
    ``database_dir``, has fewer than ``low_water`` free bytes (None: see L{low_water}).

    ``request_times`` returns the durations of reads by format, ``reactor_lag`` how late scheduled calls ran, both in
    this process since ``started_at``.
    """

    shared: Services
    formats: Mapping[str, Format]
    companions: Companions
    folders: StorageFolders
    buckets: StorageBuckets
    secrets: SecretBox
    on_change: ChangeListener
    maintenance: MaintenanceContext
    mender: Mender
    collector: GarbageCollector
    retention: RetentionWork
    jobs: Jobs
    imports: Late[StartsImports]
    mirrors: StartsMirrors
    backups: BackupRuns
    twins: Twins
    advisory_refresh: AdvisoryRefresh
    cache_purge: CachePurge
    callers: Identification
    events: Events
    database_dir: Path
    open_install: bool
    starter_upstreams: Mapping[str, str]
    token_max_days: int
    low_water: int | None
    started_at: datetime
    request_times: Callable[[], Mapping[str, Histogram]]
    reactor_lag: Callable[[], Histogram]
