"""The index of trigrams, with and without the right to create its extension."""

import psycopg
import pytest

from pkgrepo.storage.catalog.postgresql import Address
from pkgrepo.storage.catalog.postgresql.schema import INDEXES, ensure_trigram_index
from pkgrepo.storage.catalog.postgresql.sessions import open_writer


@pytest.fixture(scope="module")
def url(databases):
    with databases.another() as url:
        yield url


@pytest.fixture
def without_extension(url):
    with psycopg.connect(url, autocommit=True) as session:
        for index in INDEXES:
            session.execute(f"DROP INDEX IF EXISTS {index}")
        session.execute("DROP EXTENSION IF EXISTS pg_trgm")
        session.execute("DROP ROLE IF EXISTS guest")
        session.execute("CREATE ROLE guest LOGIN")
        yield session


def test_a_part_of_a_name_or_text_is_looked_up_in_the_index(url, without_extension):
    with open_writer(Address(url)) as session:
        assert ensure_trigram_index(session)
        assert ensure_trigram_index(session)
        session.execute("SET enable_seqscan = off")
        for index, column in zip(INDEXES, ("package_text.key", "about_text.text"), strict=True):
            table = column.partition(".")[0]
            plan = session.execute(f"EXPLAIN SELECT 1 FROM {table} WHERE {column} ILIKE '%demo%'").fetchall()
            assert any(index in line for (line,) in plan)


def test_without_the_right_to_create_the_extension_there_is_no_index(url, without_extension):
    with open_writer(Address(url.replace("user=pkgrepo", "user=guest"))) as session:
        assert not ensure_trigram_index(session)
        assert session.execute("SELECT 1").fetchone() == (1,)
    with open_writer(Address(url)) as session:
        assert ensure_trigram_index(session)
