"""The page of the book about published incidents, made by playing them with the suggested rules of their format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pkgrepo.display import lasting
from pkgrepo.gateway.format import Format
from pkgrepo.model.advisories import MalwareNames
from pkgrepo.proxy.drill.drills import decisive, outcome_of, stand_in
from pkgrepo.proxy.drill.player import Played, Player
from pkgrepo.proxy.drill.suggested import suggested_rules
from pkgrepo.proxy.incidents.corpus import incidents
from pkgrepo.proxy.incidents.shapes import Incident
from pkgrepo.storage.catalog.server.policy import StoredPolicy

_INTRODUCTION = """\
# What the suggested rules do in published incidents

Look up whether a rule would have held what did harm in an incident, and for how long. The table is made by a
[drill](drill.md) with the rules of `pkgrepo rules suggest --format FORMAT`, which a test repeats; yours are played by
`pkgrepo drill`.

*Held* means refused from the first minute until the registry had removed it, *opened* that it was refused at first, and
served before that. Of each rule it is told that it held in the first minute, with the number of versions if these were
not all. A rule in *italics* would have held all of them alone until the end. A dependency by which harm was done does
not count while the versions that need it are held.
"""


def incidents_page(formats: Mapping[str, Format]) -> str:
    """The page, in Markdown."""
    played = [(each, _play(formats[each.format], each)) for each in incidents()]
    held = sum(outcome_of(incident, found) == "held" for incident, found in played)
    lines = [
        _INTRODUCTION,
        f"Of {len(played)} incidents {held} are held.\n",
        "| incident | day | format | what differed | outcome | held at first by |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_row(each, found) for each, found in played),
        "",
        "## What happened, and who tells of it",
        "",
        "Only facts are kept: names, versions, times, what changed. A drill makes harmless packages of them. Times are",
        "as exact as reports are.",
        "",
        *(line for each, _ in played for line in _source(each)),
    ]
    return "\n".join(lines)


def _play(format_: Format, incident: Incident) -> Sequence[Played]:
    assert format_.proxied is not None
    seat = stand_in(format_, StoredPolicy(malware=MalwareNames()), suggested_rules([(format_, format_.proxied)]))
    return Player(format=format_, proxied=format_.proxied, flat=seat.flat).play(incident)


def _row(incident: Incident, played: Sequence[Played]) -> str:
    outcome = outcome_of(incident, played)
    deciding = decisive(incident, played)
    longest_s = max(each.served_ms for each in deciding) // 1000
    shown = outcome if outcome == "held" else f"**{outcome}**, served for {lasting(longest_s)}"
    name, day = incident.name, f"{incident.published_at:%Y-%m-%d}"
    cells = (name, day, incident.format, incident.changed, shown, ", ".join(_rules(deciding)) or "nothing")
    return f"| {' | '.join(cells)} |"


def _rules(played: Sequence[Played]) -> Iterator[str]:
    for rule in sorted({each.rule for one in played for each in one.at_first}):
        count = sum(any(each.rule == rule for each in one.at_first) for one in played)
        always = all(any(each.rule == rule for each in one.throughout) for one in played)
        some = "" if count == len(played) else f" {count} of {len(played)}"
        yield f"*{rule}*" if always else f"{rule}{some}"


def _source(incident: Incident) -> Iterator[str]:
    count = max(incident.count, len(incident.package_names))
    named = ", ".join(f"`{each}`" for each in incident.package_names)
    more = f" and others, {count} in all" if count > len(incident.package_names) else ""
    yield f"- **{incident.name}**: {incident.title}. {named}{more}; to the {incident.precision}."
    yield f"  Told by {'; '.join(incident.sources)}{'. ' + ', '.join(incident.ids) if incident.ids else ''}."
