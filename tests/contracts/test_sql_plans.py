"""PostgreSQL can answer every statement over a large table by an index."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

import pkgrepo
from pkgrepo.storage.catalog.engine.dialect import to_postgresql
from tests.support.postgresql_catalogs import Databases
from tests.support.sql_statements import Statement, find_statements, load_sources

# The engines, and the room that needs what a release needs and has no SQL.
WITHOUT: Final = tuple(
    f"{pkgrepo.__name__}.{name}" for name in ("storage.catalog.engine.", "storage.catalog.postgresql.", "packaging")
)
# Tables that grow with the packages and their use. The others have some thousand rows on a large server.
LARGE: Final = frozenset(
    {
        "advisory",
        "advisory_range",
        "appended_line",
        "blob",
        "checksum_claim",
        "dependency",
        "deployment_file",
        "download_count",
        "download_item",
        "download_log",
        "event",
        "file",
        "first_sight",
        "fragment",
        "image_trust",
        "manifest",
        "manifest_ref",
        "manifest_trust",
        "package",
        "package_about",
        "package_blob",
        "package_download",
        "repository_download",
        "version_download",
        "package_spelling",
        "push_lease",
        "retired_name",
        "signature",
        "superseded_document",
        "tag",
        "tombstone",
        "upstream_document",
        "version",
    }
)
# Functions whose statements read a table from one end to the other.
WHOLE: Final = {
    ("images/trust.py", "manifest"): "the rows of a partial index",
    ("images/trust.py", "tag"): "the rows of a partial index",
    ("images/trust.py", "package"): "joins those rows",
    ("packages/events.py", "event"): "the rows of a partial index",
    ("server/statistics.py", "manifest"): "the statistics of one repository, over all images",
    ("server/statistics.py", "file"): "the digests of all files, in the order of an index",
    ("server/statistics.py", "package_blob"): "the same of images",
    ("server/statistics.py", "blob"): "those of other storages",
    ("catalog/advisories.py", "advisory"): "counts all records after a refresh",
    ("catalog/download_log.py", "download_log"): "counts all rows once an hour",
    ("catalog/usage_counts.py", "event"): "from the newest one back to the first that is old enough",
}


@pytest.fixture(scope="module")
def plans(databases: Databases) -> Iterator[Mapping[str, Sequence[Any]]]:
    """The generic plans of all samples of each statement, by its place; a scan of a whole table is the last resort."""
    sources = load_sources(Path(pkgrepo.__file__).parent)
    statements, _ = find_statements([source for source in sources if not source.name.startswith(WITHOUT)])
    with databases.another() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")
            found = defaultdict(list)
            for statement in statements:
                found[statement.place].append(explain(connection, statement))
        yield found


def explain(connection: psycopg.Connection[Any], statement: Statement) -> Any:
    sql = to_postgresql(statement.sql)
    count = max(map(int, re.findall(r"\$(\d+)", sql)), default=0)
    values = f"({', '.join(['NULL'] * count)})" if count else ""
    connection.pgconn.exec_(b"DEALLOCATE ALL")
    result = connection.pgconn.exec_(f"PREPARE statement AS {sql}".encode())
    assert not result.error_message, f"{statement.place}: {result.error_message.decode()}"
    result = connection.pgconn.exec_(f"EXPLAIN (FORMAT JSON) EXECUTE statement{values}".encode())
    assert not result.error_message, f"{statement.place}: {result.error_message.decode()}"
    return json.loads(result.get_value(0, 0) or b"")[0]["Plan"]


def whole_tables(plan: Any) -> Iterator[str]:
    """The large tables, or indexes of them, that a plan reads from one end to the other."""
    inner = plan.get("Plans", [])
    conditioned = "Index Cond" in plan or any("Index Cond" in each for each in inner)
    if plan.get("Relation Name") in LARGE and re.search(r"Scan\Z", plan["Node Type"]) and not conditioned:
        yield plan["Relation Name"]
    for each in inner:
        yield from whole_tables(each)


def test_every_large_table_exists(plans: Mapping[str, Sequence[Any]]) -> None:
    assert {table for each in plans.values() for plan in each for table in tables(plan)} >= LARGE


def tables(plan: Any) -> Iterator[str]:
    if "Relation Name" in plan:
        yield plan["Relation Name"]
    for each in plan.get("Plans", []):
        yield from tables(each)


def test_no_statement_needs_to_read_a_whole_large_table(plans: Mapping[str, Sequence[Any]]) -> None:
    """A place with optional conditions has samples without any, which the program never runs: the best one counts."""
    used, wrong = set(), []
    for place, samples in plans.items():
        file = "/".join(place.partition(":")[0].split("/")[-2:])
        for table in min((set(whole_tables(plan)) for plan in samples), key=len):
            used.add((file, table))
            if (file, table) not in WHOLE:
                wrong.append(f"{place} reads all of {table}")
    assert not wrong, "\n".join(wrong)
    assert used == set(WHOLE)
