"""What fields that many records have mean."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from pkgrepo.model.structs import meaning

RepositoryPath = Annotated[str, meaning("The repository, as storage/name.")]
ObjectId = Annotated[str, meaning("The id.")]
PackageName = Annotated[str, meaning("The name of the package.")]
CreatedAt = Annotated[datetime, meaning("When it was created.")]
UpdatedAt = Annotated[datetime, meaning("When it was last changed.")]
ExpiresAt = Annotated[datetime, meaning("When it ends by itself.")]
VersionName = Annotated[str, meaning("The version; of an image, a tag or the digest of a manifest.")]
JobId = Annotated[str, meaning("The id of the job.")]
Size = Annotated[int, meaning("The size in bytes.")]
RuleName = Annotated[str, meaning("The name of the rule.")]
RepositoryId = Annotated[str, meaning("The id of the repository.")]
DryRun = Annotated[bool, meaning("Whether nothing was changed, and this is what would be done.")]
Errors = Annotated[list[str], meaning("Sentences about what went wrong.")]
Ticket = Annotated[str, meaning("The ticket that goes with the next request.")]
FormatName = Annotated[str, meaning("The name of the package format.")]
UpstreamRoute = Annotated[str | None, meaning("The name of the upstream route; null without any.")]
NextCursor = Annotated[str | None, meaning("The cursor of the following page; null on the last one.")]
RepositoryKind = Annotated[str, meaning("Hosted, Proxy or Virtual.")]
VisibilityName = Annotated[str, meaning("Who may read it: public, private or hidden.")]
Sentence = Annotated[str, meaning("A sentence for people.")]
MediaType = Annotated[str, meaning("The media type.")]
Username = Annotated[str, meaning("The name of the user.")]
FirstFetch = Annotated[datetime, meaning("When it was fetched first, within the log.")]
LastFetch = Annotated[datetime, meaning("When it was fetched last.")]
Warnings = Annotated[list[str], meaning("Sentences about risks and consequences of the settings.")]
Misses = Annotated[int, meaning("Requests that an upstream answered.")]
HitRatio = Annotated[float | None, meaning("The part of requests that needed no upstream; null without any.")]
Total = Annotated[int, meaning("How many there are in all.")]
DownloadCount = Annotated[int, meaning("How many complete downloads there were.")]
Day = Annotated[date, meaning("The day (UTC).")]
ProblemSentence = Annotated[str, meaning("A sentence about what is wrong; empty if nothing is.")]
SecondFactorCode = Annotated[str, meaning("The code of the second factor, where the account has one.")]
