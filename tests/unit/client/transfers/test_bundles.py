"""What a bundle gets of a repository."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pkgrepo.client.transfers.bundles import FORMATS, Bundling
from pkgrepo.importing.bundle_file import Facts
from pkgrepo.mirroring.choosing import Chosen
from pkgrepo.mirroring.reading import read_lock
from tests.support.lock_files import FORMATS as LOCKS

LOCK = """GEM
  remote: https://gems.example.test/
  specs:
    left (1.0.0)

PLATFORMS
  ruby

DEPENDENCIES
  left
"""


class YankedGems:
    """A server with gems of which two versions are yanked."""

    async def items(self, *place: str) -> AsyncIterator[Any]:
        if place[-1] == "packages":
            yield {"key": "left", "name": "left"}
        elif place[-1] == "versions":
            for version in ("1.0.0", "2.0.0"):
                yield {"version": version, "published_at": None, "publisher": "", "state": "yanked", "reason": ""}
        else:
            yield {"path": f".yanked/gems/left-{place[-2]}.gem", "digests": {"sha256": "0" * 64}, "size": 1}


@pytest.mark.parametrize(
    ("locked", "versions", "withheld"),
    [(False, ["1.0.0", "2.0.0"], []), (True, ["1.0.0"], ["gems/left-1.0.0.gem: it is yanked"])],
)
async def test_yanks_of_gems_travel_as_far_as_the_lock_names_them(
    locked: bool, versions: list[str], withheld: list[str]
) -> None:
    chosen = Chosen(LOCKS["ruby"]) if locked else None
    if chosen is not None:
        chosen.add(read_lock("Gemfile.lock", LOCK, "ruby", LOCKS))
    writer: Any = None
    work = Bundling(YankedGems(), "main/gems", writer, Facts(format="ruby"), chosen, {})
    await FORMATS["ruby"](work)
    assert [*work.facts.packages["left"].versions] == versions
    assert work.withheld == withheld
