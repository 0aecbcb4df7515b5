"""Steps and results in sentences."""

from __future__ import annotations

from datetime import datetime

from pkgrepo.proxy.resolving.members import LatestReason
from pkgrepo.proxy.trace import StepKind

from .schema import ExplanationRecord, LatestRecord, StepRecord

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
    StepKind.HIDDEN: "{hidden_count} versions of {repository} are younger than the {days:g} days that {rule} asks for",
    StepKind.FILE_KEPT: "{repository} keeps the file",
    StepKind.GONE: "no route of {repository} has {package} any more; what is kept of it is served until {fresh_until}",
    StepKind.FILE_LISTED: "route {route} of {repository} has the file; it is fetched when a client asks for it",
    StepKind.FILE_UNLISTED: "{repository} does not have the file",
    StepKind.FILE_REMOVED: "no upstream of {repository} lists the file any more; policy.keep_removed has it served",
    StepKind.FILE_REFUSED: "{reason}",
    StepKind.UNSIGNED: "{repository} has {package}, and no trusted key has signed it",
}
_WITHHELD_ROUTE = "route {route} of {repository} is not asked: an earlier route failed, and may have {package}"
_MANIFESTS = {  # of steps about a manifest
    StepKind.FETCHED: "route {route} of {repository} sent {package} at {at}, which is {digest}",
    StepKind.CONFIRMED: "route {route} of {repository} said at {at} that {package} is {digest}, which is kept",
    StepKind.FILE_KEPT: "{repository} keeps {package}",
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
    LatestReason.REPLACED: "{repository} tags {hidden} as latest, which is too young; {version} is the next one below",
    LatestReason.HIGHEST: "{version} is the highest final version that is not withdrawn, if there is one",
}


def step_sentence(step: StepRecord) -> str:
    """What a step means."""
    template = _MANIFESTS.get(step.step) if step.digest is not None else None
    if step.step is StepKind.WITHHELD and step.route is not None:
        template = _WITHHELD_ROUTE
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
    return template.format(package=values.get("what") or "the package", **values)


def _text(value: object) -> object:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else value
