"""A small round of each load goes through: nothing is refused, and all that was published is listed."""

from __future__ import annotations

import pytest

from tests.lab.load.run import main, run_load
from tests.lab.load.scenarios import LOADS
from tests.lab.page import Results

pytestmark = [pytest.mark.faults, pytest.mark.folder("fills a catalog"), pytest.mark.sqlite("fills a catalog")]


@pytest.mark.parametrize("name", LOADS)
def test_a_small_round(name: str) -> None:
    said: list[str] = []
    found, wrong = run_load(name, LOADS[name].small, said.append, workers=1, forked=True, idle_s=0.3)
    assert wrong == [], said
    told = Results(loads={each.name: each for each in found}).page()
    assert found
    assert all(f"| {each.size} {each.name} | {each.took_s:.0f} s |" in told for each in found)


def test_unknown_loads_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing=1"])
    assert "there is no load nothing" in capsys.readouterr().err
