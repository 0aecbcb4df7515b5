"""
Known vulnerabilities: records of an advisory database by package, and the versions in repositories that they affect.

A row of ``advisory`` is what one record says of one package. ``advisory_range`` has its spans of sort keys, so that
the database itself finds the affected versions: what is published later needs no step of its own. ``shown_as`` names
the record that is shown for all records of one vulnerability, and ``severity`` is that of this one, as its index in
L{SEVERITIES}.

Of the last complete load of an export, L{AdvisoryLoad} is kept among the settings. Without one nothing is known of any
version, whatever the tables have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from attrs import evolve, frozen

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model.advisories import MALWARE, SEVERITIES, Advisory
from pkgrepo.storage.catalog.malware import NEXT, add_names, has_room, store_names
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.rows import batches, column, dump, every, non_null, optional_conditions, placeholders
from pkgrepo.storage.catalog.server import settings

LOAD: Final = "advisories"  # the key among the settings
MOST_SHOWN: Final = 20  # affected versions of a package that a list has

# Databases whose records are shown rather than those of others, the best first: with severities and fixed versions.
_PREFERRED: Final = ("GHSA-", "MAL-", "PYSEC-", "RUSTSEC-", "CVE-")
_encode = msgspec.json.Encoder().encode
_decode = read_advisory = msgspec.json.Decoder(Advisory).decode


@frozen(kw_only=True)
class AdvisoryLoad:
    """
    The last complete load of an export from ``source``, which is all that the tables have.

    ``records`` are the numbers of stored records by ecosystem; ``unreadable`` is that of records that were skipped.
    ``exported_ms`` is the time of the export itself: of its youngest file, or as its server says. ``loaded_ms`` is when
    it was last found to be unchanged, or was loaded. ``validator`` is what a later request is made conditional with.
    ``reader`` is the version of the code that has read the records. ``changes`` counts changes of what is known to be
    malware, and exports of other times.
    """

    source: str
    records: Mapping[str, int]
    unreadable: int
    exported_ms: int
    loaded_ms: int
    validator: str = ""
    reader: int = 0
    changes: int = 0


@frozen
class Finding:
    """
    A vulnerability of a package in a repository; ``severity`` is an index in L{SEVERITIES}.

    ``versions`` is the number of its versions in the repository that are affected.
    """

    repository_id: int
    key: str
    package: str
    advisory: str
    severity: int
    versions: int


FINDING_ORDERS: Final[Mapping[str, Order[Finding]]] = both_ways(
    {
        "severity": [
            ("severity", int, lambda each: each.severity),
            ("package_key", str, lambda each: each.key),
            ("repository_id", int, lambda each: each.repository_id),
            ("advisory", str, lambda each: each.advisory),
        ],
        "package": [
            ("package_key", str, lambda each: each.key),
            ("repository_id", int, lambda each: each.repository_id),
            ("advisory", str, lambda each: each.advisory),
        ],
    }
)
# Repositories with their ecosystems, each a row of two parameters.
_PLACE: Final = "(CAST(? AS BIGINT), CAST(? AS TEXT))"
# The words CROSS JOIN keep SQLite from beginning with all advisories, or with all versions.
_AFFECTED: Final = """
    FROM place s CROSS JOIN package p CROSS JOIN advisory a CROSS JOIN advisory_range x CROSS JOIN version v
    WHERE p.repository_id = s.repository_id AND p.derived = 0
        AND a.ecosystem = s.ecosystem AND a.package_key = p.key AND x.advisory_id = a.id
        AND v.package_id = p.id AND v.sort >= x.low AND v.sort < x.high
"""
# A row for each vulnerability of a package.
_FINDING: Final = f"""
    SELECT p.repository_id AS repository_id, p.key AS package_key, p.name AS package, a.shown_as AS advisory,
           MAX(a.severity) AS severity, COUNT(DISTINCT v.id) AS versions
    {_AFFECTED}
"""
_GROUPED: Final = "GROUP BY p.repository_id, p.key, p.name, a.shown_as"
Place = tuple[int, str]  # a repository by id, and its ecosystem


def find_load(r: Reader) -> AdvisoryLoad | None:
    """The last complete load; None if there was none."""
    text = settings.get(r, LOAD)
    return None if text is None else msgspec.json.decode(text, type=AdvisoryLoad)


def put_load(tx: Transaction, loaded: AdvisoryLoad) -> None:
    """
    Note that a load is complete. Of another export, rules decide anew: documents may change.

    Changes of malware that were noted since the last one are kept.
    """
    before = find_load(tx)
    if before is None or (before.source, before.reader) != (loaded.source, loaded.reader) or not has_room(tx):
        store_names(tx)
    anew = before is None or before.exported_ms != loaded.exported_ms
    settings.put(tx, LOAD, dump(evolve(loaded, changes=(0 if before is None else before.changes) + anew)))
    if anew:
        settings.bump_config_serial(tx)


def modified_of(r: Reader, records: Sequence[str]) -> dict[str, str]:
    """When some records were changed, as they say themselves, by id; those that are not stored are left out."""
    found: dict[str, str] = {}
    for some in batches(records):
        found.update(r.all(f"SELECT record, modified FROM advisory WHERE record IN ({placeholders(len(some))})", some))
    return found


def put_records(tx: Transaction, records: Sequence[tuple[str, Sequence[Advisory]]], *, whole: bool = False) -> None:
    """
    Store some records, by id, in place of what was stored of them; without advisories they are removed.

    Malware is blocked from the commit on, and what is none any more is served; of a ``whole`` export that is not noted
    before its end.
    """
    touched = _remove(tx, [record for record, _ in records])
    for record, advisories in records:
        for each in advisories:
            key = tx.insert(
                "INSERT INTO advisory (record, ecosystem, package_key, shown_as, severity, modified, data)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
                (record, each.ecosystem, each.package, record, _rank(each), each.modified, _encode(each).decode()),
            )
            for low, high in each.spans:
                tx.send("INSERT INTO advisory_range (advisory_id, low, high) VALUES (?, ?, ?)", (key, low, high))
            touched.add((each.ecosystem, each.package))
    for ecosystem, package in sorted(touched):
        _group(tx, ecosystem, package)
    loaded = None if whole or not any(record.startswith(MALWARE) for record, _ in records) else find_load(tx)
    if loaded is not None:
        every = (each for _, advisories in records for each in advisories)
        add_names(tx, {(each.ecosystem, each.package) for each in every if each.is_malware})
        settings.put(tx, LOAD, dump(evolve(loaded, changes=loaded.changes + 1)))
        settings.bump_config_serial(tx)


def record_ids(r: Reader, after: str, limit: int) -> list[str]:
    """A page of the ids of stored records, in order."""
    return column(r, "SELECT DISTINCT record FROM advisory WHERE record > ? ORDER BY record LIMIT ?", (after, limit))


def count_records(r: Reader) -> dict[str, int]:
    """The number of stored records by ecosystem."""
    return dict(r.all("SELECT ecosystem, COUNT(DISTINCT record) FROM advisory GROUP BY ecosystem"))


def advisories_of(r: Reader, ecosystem: str, packages: Iterable[str]) -> dict[str, list[Advisory]]:
    """The advisories on some packages, by key; packages without any are left out."""
    found: dict[str, list[Advisory]] = {}
    for some in batches(list(packages)):
        rows = r.all(
            f"""
            SELECT package_key, shown_as, severity, data FROM advisory
            WHERE ecosystem = ? AND package_key IN ({placeholders(len(some))}) ORDER BY package_key, record
            """,
            (ecosystem, *some),
        )
        for key, shown_as, severity, data in rows:
            advisory = evolve(_decode(data), shown_as=shown_as, severity=SEVERITIES[severity])
            found.setdefault(key, []).append(advisory)
    return found


def severities_of_packages(r: Reader, place: Place, keys: Sequence[str]) -> dict[str, Mapping[str, int]]:
    """
    How many vulnerabilities of each severity versions of some packages of a repository have, by key.

    Packages without any are left out.
    """
    found: dict[str, Counter[str]] = {}
    for some in batches(keys):
        rows = r.all(
            f"""
            {_places(1)}, finding AS ({_FINDING} AND p.key IN ({placeholders(len(some))}) {_GROUPED})
            SELECT package_key, severity FROM finding
            """,
            (*place, *some),
        )
        for key, severity in rows:
            found.setdefault(key, Counter())[SEVERITIES[severity]] += 1
    return dict(found)


def list_findings(
    r: Reader,
    places: Sequence[Place],
    *,
    after: Sequence[Value] = (),
    limit: int,
    order: str,
    package_key: str | None = None,
    severity: int | None = None,
) -> list[Finding]:
    """A page of the vulnerabilities in some repositories, or of those of a package or of a severity."""
    if not places:
        return []
    sorting = FINDING_ORDERS[order]
    beyond = f"AND {sorting.beyond}" if after else ""
    return every(
        r,
        lambda row: Finding(*row),
        f"""
        {_places(len(places))}, finding AS (
            {_FINDING} AND {optional_conditions(("p.key = ?",), (package_key,))} {_GROUPED}
        )
        SELECT repository_id, package_key, package, advisory, severity, versions FROM finding
        WHERE {optional_conditions(("severity = ?",), (severity,))} {beyond} ORDER BY {sorting.by} LIMIT ?
        """,
        (*_values(places), *non_null([package_key, severity]), *after, limit),
    )


def count_findings(r: Reader, places: Sequence[Place], package_key: str | None = None) -> tuple[dict[str, int], int]:
    """The number of vulnerabilities in some repositories by severity, and the number of packages that have any."""
    if not places:
        return {}, 0
    rows = r.all(
        f"""
        {_places(len(places))}, finding AS (
            {_FINDING} AND {optional_conditions(("p.key = ?",), (package_key,))} {_GROUPED}
        )
        SELECT repository_id, package_key, severity, COUNT(*) FROM finding GROUP BY repository_id, package_key, severity
        """,
        (*_values(places), *non_null([package_key])),
    )
    counts: Counter[str] = Counter()
    for *_, severity, count in rows:
        counts[SEVERITIES[severity]] += count
    return dict(counts), len({(owner, key) for owner, key, *_ in rows})


def vulnerable_packages(r: Reader, places: Sequence[Place], limit: int) -> list[tuple[int, str]]:
    """The packages with vulnerable versions in some repositories, by repository id and key, the worst first."""
    if not places:
        return []
    return r.all(
        f"""
        {_places(len(places))}, finding AS ({_FINDING} {_GROUPED})
        SELECT repository_id, package_key FROM finding GROUP BY repository_id, package_key
        ORDER BY MAX(severity) DESC, package_key, repository_id LIMIT ?
        """,
        (*_values(places), limit),
    )


def malware_in(r: Reader, places: Sequence[Place], limit: int) -> list[tuple[int, str, str, Advisory]]:
    """The stored versions that records say to be malware: repository id, package, version, and what the record says."""
    if not places:
        return []
    rows = r.all(
        f"""
        {_places(len(places))} SELECT p.repository_id, p.name, v.text, a.data {_AFFECTED}
            AND a.record >= ? AND a.record < ? ORDER BY p.repository_id, p.key, v.sort LIMIT ?
        """,
        (*_values(places), MALWARE, NEXT, limit),
    )
    return [(owner, package, version, _decode(data)) for owner, package, version, data in rows]


def find_record(r: Reader, record: str) -> list[Advisory]:
    """What a stored record says of each package, or one that is shown for it or has it as an alias."""
    sql = "SELECT data FROM advisory WHERE record = ? OR shown_as = ? ORDER BY record, ecosystem, package_key LIMIT 100"
    return [_decode(data) for (data,) in r.all(sql, (record, record))]


def affected_versions(r: Reader, place: Place, finding: Finding) -> list[str]:
    """The highest of the affected versions of a finding, at most ``MOST_SHOWN``."""
    return column(
        r,
        f"""
        {_places(1)} SELECT v.text {_AFFECTED} AND p.key = ? AND a.shown_as = ?
        GROUP BY v.id, v.text, v.sort, v.key ORDER BY v.sort DESC, v.key DESC LIMIT ?
        """,
        (*place, finding.key, finding.advisory, MOST_SHOWN),
    )


def _places(count: int) -> str:
    return f"WITH place (repository_id, ecosystem) AS (VALUES {placeholders(count, _PLACE)})"


def _values(places: Sequence[Place]) -> list[Value]:
    return [value for place in places for value in place]


def _rank(advisory: Advisory) -> int:
    return SEVERITIES.index(advisory.severity)


def _remove(tx: Transaction, ids: Sequence[str]) -> set[tuple[str, str]]:
    """Remove the rows of some records. Returns the ecosystems and keys of their packages."""
    touched: set[tuple[str, str]] = set()
    for some in batches(ids):
        marks = placeholders(len(some))
        touched.update(tx.all(f"SELECT DISTINCT ecosystem, package_key FROM advisory WHERE record IN ({marks})", some))
        tx.send(f"DELETE FROM advisory WHERE record IN ({marks})", some)
    return touched


def _group(tx: Transaction, ecosystem: str, package: str) -> None:
    """Bring ``shown_as`` and ``severity`` of all records on a package up to date."""
    rows = tx.all(
        "SELECT id, shown_as, severity, data FROM advisory WHERE ecosystem = ? AND package_key = ? ORDER BY record",
        (ecosystem, package),
    )
    if not rows:
        return
    advisories = [_decode(data) for *_, data in rows]
    for together in _clusters([{each.id, *each.aliases} for each in advisories]):
        best = min((advisories[at] for at in together), key=lambda each: (_preference(each.id), each.id))
        severity = _rank(best) or max(_rank(advisories[at]) for at in together)
        for at in together:
            key, shown_as, before, _ = rows[at]
            if (shown_as, before) != (best.id, severity):
                tx.send("UPDATE advisory SET shown_as = ?, severity = ? WHERE id = ?", (best.id, severity, key))


def _preference(id: str) -> int:
    return next((rank for rank, prefix in enumerate(_PREFERRED) if id.startswith(prefix)), len(_PREFERRED))


def _clusters(names: Sequence[set[str]]) -> list[list[int]]:
    """The indexes of sets that share names, also by way of others."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = name = parent[parent[name]]
        return name

    for some in names:
        first = root(next(iter(some)))
        for each in some:
            parent[root(each)] = first
    found: dict[str, list[int]] = {}
    for at, some in enumerate(names):
        found.setdefault(root(next(iter(some))), []).append(at)
    return list(found.values())
