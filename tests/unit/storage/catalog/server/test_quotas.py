"""What repositories use is counted right after every change, and no change exceeds a quota."""

import os

import pytest

from pkgrepo.errors import QuotaExceeded
from pkgrepo.model import RepositoryType
from pkgrepo.storage.catalog.server import quotas, repositories
from pkgrepo.storage.catalog.server.quotas import Limits, QuotaKind, Usage
from tests.support.catalog import MemoryCatalog
from tests.support.quota_walk import QuotaWalk, add_two_repositories

STEPS = int(os.environ.get("QUOTA_STEPS", "2000"))


async def test_the_counts_equal_the_sums_after_random_changes():
    catalog = MemoryCatalog()
    walk = QuotaWalk(catalog, catalog.do(add_two_repositories), seed=STEPS)
    await walk.run(STEPS, checked_each=1 if STEPS < 10_000 else 10)
    assert walk.refused > STEPS // 100
    assert walk.done > STEPS // 4


def test_growth_beyond_a_limit_is_refused_and_80_percent_are_an_event():
    catalog = MemoryCatalog()
    first, second = catalog.do(add_two_repositories)
    catalog.do(quotas.change_limits, QuotaKind.STORAGE, 1, {"bytes": 100, "versions": 3})
    catalog.do(repositories.add_usage, first.id, Usage(79), 5)
    assert catalog.peek(lambda r: r.all("SELECT kind FROM event")) == []
    catalog.do(repositories.add_usage, second.id, Usage(1, 1, 1), 6)
    [(kind, data)] = catalog.peek(lambda r: r.all("SELECT kind, data FROM event"))
    assert (kind, '"used":80' in data) == ("quota.warning", True)
    with pytest.raises(QuotaExceeded, match=r"storage main .* 100 bytes, 80 are used, and this adds 21"):
        catalog.do(repositories.add_usage, first.id, Usage(21), 7)
    assert catalog.peek(quotas.usage_of, QuotaKind.SERVER, 0) == Usage(80, 1, 1)
    catalog.do(quotas.change_limits, QuotaKind.STORAGE, 1, {"bytes": 10})
    catalog.do(repositories.add_usage, first.id, Usage(-20), 8)  # what shrinks is never refused
    assert catalog.peek(quotas.limits_of, QuotaKind.STORAGE, 1) == Limits(bytes=10, versions=3)
    catalog.do(quotas.change_limits, QuotaKind.STORAGE, 1, {"bytes": None, "versions": None})
    assert catalog.peek(lambda r: r.all("SELECT * FROM quota")) == []


def test_what_a_proxy_keeps_is_counted_and_not_refused():
    catalog = MemoryCatalog()
    first, _ = catalog.do(add_two_repositories)
    catalog.do(repositories.update_repository, first.id, now_ms=2, type=RepositoryType.PROXY)
    catalog.do(quotas.change_limits, QuotaKind.SERVER, 0, {"bytes": 10})
    catalog.do(repositories.add_usage, first.id, Usage(11), 3)
    assert catalog.peek(quotas.usage_of, QuotaKind.SERVER, 0).bytes == 11
