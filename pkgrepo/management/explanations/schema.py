"""The records of explanations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pkgrepo.management.api.fields import (
    MediaType,
    PackageName,
    RepositoryKind,
    RepositoryPath,
    RuleName,
    Sentence,
    Size,
    UpstreamRoute,
    VersionName,
)
from pkgrepo.management.api.schema import Record
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.explaining import Outcome, RoleKind
from pkgrepo.proxy.format import LatestReason
from pkgrepo.proxy.trace import StepKind
from pkgrepo.repositories.policy.trust import Trust
from pkgrepo.storage.catalog.file_facts import Attested


class HiddenVersionRecord(Record):
    """A version that a rule hides."""

    version: Annotated[str, meaning("The hidden version.")]
    published_at: Annotated[datetime | None, meaning("When it was published.")]
    opens_at: Annotated[datetime | None, meaning("When the rule no longer hides it; null if it stays hidden.")]


class StepRecord(Record):
    """
    One step, in the order in which the server decided; sentence says the same for people.

    Repositories that the caller may not know are called member 1 and so on.
    """

    step: Annotated[StepKind, meaning("The kind of step.")]
    sentence: Sentence
    repository: Annotated[
        str, meaning("The member that it is about; those that the caller may not know are member 1 and so on.")
    ]
    route: UpstreamRoute = None
    at: Annotated[
        datetime | None, meaning("When an upstream said it, which is before the request if a kept answer was used.")
    ] = None
    fetched_at: Annotated[datetime | None, meaning("When a kept answer was fetched.")] = None
    fresh_until: Annotated[datetime | None, meaning("When the kept answer is asked for again.")] = None
    reason: Annotated[str | None, meaning("The reason of the step; null without any.")] = None
    rule: Annotated[str | None, meaning("The repository whose policy decided, or the server.")] = None
    rule_name: Annotated[str | None, meaning("The name of the rule in that policy.")] = None
    pattern: Annotated[str | None, meaning("The pattern of that policy.")] = None
    days: Annotated[float | None, meaning("The days of that policy.")] = None
    hidden: Annotated[list[HiddenVersionRecord], meaning("The newest hidden versions.")] = []
    hidden_count: Annotated[int, meaning("How many versions are hidden.")] = 0
    path: Annotated[str | None, meaning("The path of the file that it is about.")] = None
    what: Annotated[str | None, meaning("The tag or digest of an image, as the route calls it.")] = None
    digest: Annotated[str | None, meaning("The digest of the manifest.")] = None


class ServingRecord(Record):
    """
    A repository that serves the package; several are merged in this order.

    The other fields are null for a hosted one.
    """

    repository: RepositoryPath
    type: RepositoryKind
    route: UpstreamRoute = None
    url: Annotated[
        str | None, meaning("The address there, for callers with the action edit; null for a hosted one.")
    ] = None
    fetched_at: Annotated[datetime | None, meaning("When its answer was fetched; null for a hosted one.")] = None
    confirmed_at: Annotated[
        datetime | None, meaning("When an upstream last confirmed its answer; null for a hosted one.")
    ] = None
    fresh_until: Annotated[datetime | None, meaning("When the upstream is asked again; null for a hosted one.")] = None
    stale: Annotated[bool, meaning("Whether an upstream failed, and its kept answer is used.")] = False
    hides_all: Annotated[bool, meaning("Whether rules hide all versions that it has.")] = False


class LatestRecord(Record):
    """
    The version that clients take for the latest, and why.

    tag: repository says so. replaced: repository says hidden, which a rule hides, and this is the next lower one.
    highest: it follows from the order of versions, pre-releases and withdrawn versions last.
    """

    version: VersionName
    reason: Annotated[LatestReason, meaning("tag, replaced or highest.")]
    sentence: Sentence
    repository: Annotated[
        str | None, meaning("The repository that says so; null if it follows from the order of versions.")
    ] = None
    hidden: Annotated[str | None, meaning("The version that the repository names and a rule hides; null for none.")] = (
        None
    )


class NotKnown(Record):
    """A rule that lets a version pass since data are not known, which missing names."""

    repository: Annotated[str, meaning("The repository whose rule it is.")]
    rule: RuleName
    missing: Annotated[str, meaning("The data that are not known.")]


class TrustRecord(Record):
    """
    Who published a version, as far as a rule asks for it: its rank, and the best one of the versions before.

    Ranks are none, provenance, publisher and staged. With claimed alone the provenance was not verified yet.
    """

    claimed: Annotated[str, meaning("The rank that the document claims; unsaid if those of the format do not tell.")]
    rank: Annotated[str | None, meaning("The rank after verification; null if the provenance was not read.")]
    before: Annotated[str | None, meaning("The best rank of the versions before; null if it is not known.")]
    before_version: Annotated[str | None, meaning("The version that has it; null for none.")]
    why: Annotated[str, meaning("Why the provenance is not verified; empty otherwise.")]
    issuer: Annotated[str, meaning("Who issued the identity token of the pipeline, if it is verified.")]
    source: Annotated[str, meaning("The address of its source repository, if it is verified.")]
    workflow: Annotated[str, meaning("The address of the pipeline's definition, if it is verified.")]
    ref: Annotated[str, meaning("The branch or tag that it was made of, if it is verified.")]
    commit: Annotated[str, meaning("The commit that it was made of, if it is verified.")]

    @classmethod
    def of(cls, trust: Trust) -> Self:
        """That of what is known."""
        found = trust.attested or Attested(root="")
        return cls(
            claimed="unsaid" if trust.claim.unsaid else trust.claim.rank.name.lower(),
            rank=None if trust.rank is None else trust.rank.name.lower(),
            before=None if trust.before is None else trust.before.name.lower(),
            before_version=trust.best or None,
            why=found.why,
            issuer=found.issuer,
            source=found.repository,
            workflow=found.workflow,
            ref=found.ref,
            commit=found.commit,
        )


class ExplainedVersion(Record):
    """
    The version that was asked about.

    With first_seen, published_at is when the server first saw it.
    """

    version: VersionName
    repository: RepositoryPath
    published_at: Annotated[
        datetime | None, meaning("When it was published, or with first_seen, when the server first saw it.")
    ]
    first_seen: Annotated[bool, meaning("Whether only the time is known at which the server first saw it.")]
    hidden: Annotated[bool, meaning("Whether a rule hides it.")]
    opens_at: Annotated[datetime | None, meaning("When the rule no longer hides it; null if it stays hidden.")]
    not_known: Annotated[list[NotKnown], meaning("Rules that would decide otherwise if more was known of it.")]
    trust: Annotated[TrustRecord | None, meaning("Who published it; null if no rule asks for that.")] = None


class ExplainedFile(Record):
    """The file that was asked about. If it is not kept yet, it is fetched when a client asks for it."""

    path: Annotated[str, meaning("The path in the repository.")]
    repository: RepositoryPath
    kept: Annotated[bool, meaning("Whether it is kept; otherwise it is fetched when a client asks for it.")]
    route: UpstreamRoute = None
    url: Annotated[str | None, meaning("The address at the upstream, for callers with the action edit.")] = None


class PlatformRecord(Record):
    """A platform of an image, such as linux/arm64. What is not kept yet is fetched when a client asks for it."""

    platform: Annotated[str, meaning("The platform, such as linux/arm64.")]
    digest: Annotated[str, meaning("The digest of its manifest.")]
    kept: Annotated[bool, meaning("Whether it is kept; otherwise it is fetched when a client asks for it.")]


class ExplainedManifest(Record):
    """The manifest that clients get for the tag or digest that was asked about."""

    reference: Annotated[str, meaning("The tag or digest that was asked about.")]
    repository: RepositoryPath
    digest: Annotated[str, meaning("The digest, as algorithm:hex.")]
    media_type: MediaType
    size: Size
    first_seen_at: Annotated[
        datetime | None, meaning("When the server first saw it, if a rule about the age of images holds.")
    ]
    platforms: Annotated[list[PlatformRecord], meaning("The platforms of an index, at most 100.")]


class RoleRecord(Record):
    """
    What a repository that has the package does with the version that was asked about.

    serves; hides: a rule holds it back, and why says which; shadowed: an earlier repository serves it; lacks.
    """

    repository: RepositoryPath
    kind: Annotated[RoleKind, meaning("serves, hides, shadowed or lacks.")]
    why: Annotated[str, meaning("Why it is hidden; empty otherwise.")]


class ExplanationRecord(Record):
    """What a client gets under the name of a package, and how that was decided; sentence says it for people."""

    repository: RepositoryPath
    package: PackageName
    outcome: Annotated[Outcome, meaning("What a client gets.")]
    sentence: Sentence
    steps: Annotated[list[StepRecord], meaning("The steps, in the order in which the server decided.")]
    serving: Annotated[list[ServingRecord], meaning("The repositories that serve the package, merged in this order.")]
    latest: Annotated[
        LatestRecord | None, meaning("The version that clients take for the latest; null without any.")
    ] = None
    version: Annotated[ExplainedVersion | None, meaning("The version that was asked about; null without one.")] = None
    roles: Annotated[list[RoleRecord], meaning("What each repository of serving does with that version.")] = []
    file: Annotated[ExplainedFile | None, meaning("The file that was asked about; null without one.")] = None
    manifest: Annotated[ExplainedManifest | None, meaning("The manifest that was asked about; null without one.")] = (
        None
    )
