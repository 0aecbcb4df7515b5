"""The records of explanations."""

from __future__ import annotations

from datetime import datetime

from pkgrepo.management.api.schema import Record
from pkgrepo.proxy.explaining import Outcome
from pkgrepo.proxy.format import LatestReason
from pkgrepo.proxy.trace import StepKind


class HiddenVersionRecord(Record):
    """A version that a rule hides. opens_at is null if it stays hidden until something changes."""

    version: str
    published_at: datetime | None
    opens_at: datetime | None


class StepRecord(Record):
    """
    One step, in the order in which the server decided; sentence says the same for people.

    repository is the member that it is about. at is when an upstream said it, which is before the request if a kept
    answer was used. fetched_at is when a kept answer was fetched, fresh_until when it is asked for again. rule is the
    repository whose policy decided, or the server; pattern, days or rule_name are from that policy. hidden are the
    newest hidden versions, hidden_count is the number of all. what is the tag or digest of an image as the route calls
    it, digest that of a manifest. Repositories that the caller may not know are called member 1 and so on.
    """

    step: StepKind
    sentence: str
    repository: str
    route: str | None = None
    at: datetime | None = None
    fetched_at: datetime | None = None
    fresh_until: datetime | None = None
    reason: str | None = None
    rule: str | None = None
    rule_name: str | None = None
    pattern: str | None = None
    days: float | None = None
    hidden: list[HiddenVersionRecord] = []
    hidden_count: int = 0
    path: str | None = None
    what: str | None = None
    digest: str | None = None


class ServingRecord(Record):
    """
    A repository that serves the package; several are merged in this order.

    The other fields are null for a hosted one. stale: an upstream failed, and its kept answer is used. url is only
    shown to callers with the action edit in that repository.
    """

    repository: str
    type: str
    route: str | None = None
    url: str | None = None
    fetched_at: datetime | None = None
    confirmed_at: datetime | None = None
    fresh_until: datetime | None = None
    stale: bool = False


class LatestRecord(Record):
    """
    The version that clients take for the latest, and why.

    tag: repository says so. replaced: repository says hidden, which a rule hides, and this is the next lower one.
    highest: it follows from the order of versions, pre-releases and withdrawn versions last.
    """

    version: str
    reason: LatestReason
    sentence: str
    repository: str | None = None
    hidden: str | None = None


class NotKnown(Record):
    """A rule that lets a version pass since data are not known, which missing names."""

    repository: str
    rule: str
    missing: str


class ExplainedVersion(Record):
    """
    The version that was asked about. With first_seen, published_at is when the server first saw it.

    not_known are the rules that would be about it, or not, if more was known of it.
    """

    version: str
    repository: str
    published_at: datetime | None
    first_seen: bool
    hidden: bool
    opens_at: datetime | None
    not_known: list[NotKnown]


class ExplainedFile(Record):
    """The file that was asked about. If it is not kept yet, it is fetched when a client asks for it."""

    path: str
    repository: str
    kept: bool
    route: str | None = None
    url: str | None = None


class PlatformRecord(Record):
    """A platform of an image, such as linux/arm64. What is not kept yet is fetched when a client asks for it."""

    platform: str
    digest: str
    kept: bool


class ExplainedManifest(Record):
    """
    The manifest that clients get for the tag or digest that was asked about.

    first_seen_at is when the server first saw it, if a rule about the age of images holds. platforms are those of an
    index, at most 100.
    """

    reference: str
    repository: str
    digest: str
    media_type: str
    size: int
    first_seen_at: datetime | None
    platforms: list[PlatformRecord]


class ExplanationRecord(Record):
    """What a client gets under the name of a package, and how that was decided; sentence says it for people."""

    repository: str
    package: str
    outcome: Outcome
    sentence: str
    steps: list[StepRecord]
    serving: list[ServingRecord]
    latest: LatestRecord | None = None
    version: ExplainedVersion | None = None
    file: ExplainedFile | None = None
    manifest: ExplainedManifest | None = None
