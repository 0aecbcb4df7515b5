"""Each blob store under the contract."""

import pytest
import pytest_twisted

from tests.support.blob_store_cases import CASES


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    return CASES[request.param](tmp_path / "store")


@pytest_twisted.async_yield_fixture
async def store(case):
    yield await case.start()
    await case.stop()
