"""A small round of each load goes through: nothing is refused, and all that was published is listed."""

from __future__ import annotations

import pytest

from tests.lab.load.run import main, run_load
from tests.lab.load.scenarios import LOADS

pytestmark = [pytest.mark.faults, pytest.mark.folder("fills a catalog"), pytest.mark.sqlite("fills a catalog")]


@pytest.mark.parametrize("name", LOADS)
def test_a_small_round(name: str) -> None:
    said: list[str] = []
    assert run_load(name, LOADS[name][2], said.append, workers=1) == [], said
    assert any("others' p99" in line for line in said)


def test_unknown_loads_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing=1"])
    assert "there is no load nothing" in capsys.readouterr().err
