"""Catalogs of every engine. To test another one, add its case to ``CASES``."""

import pytest
import pytest_twisted

from tests.support.catalogs import DelayedCase, SqliteCase
from tests.support.postgresql_catalogs import PostgresCase, replicated

CASES = {"sqlite": SqliteCase, "delayed": DelayedCase}


@pytest.fixture(params=[*CASES, "postgresql", "replica"])
def case(request, tmp_path):
    if request.param in CASES:
        yield CASES[request.param](tmp_path)
        return
    with request.getfixturevalue("databases").another() as url:
        if request.param == "replica":
            yield replicated(url, request.getfixturevalue("replica"))
        else:
            yield PostgresCase(url)


@pytest_twisted.async_yield_fixture
async def catalog(case):
    yield await case.another()
    await case.stop()
