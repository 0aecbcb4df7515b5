"""How commands show what they do."""

from __future__ import annotations

import pytest

from pkgrepo.client.terminal import Bar, Lines


@pytest.mark.parametrize("shown", [Bar, Lines])
@pytest.mark.parametrize("total", [0, 3])
def test_steps_are_shown_also_if_it_is_not_known_how_many_come(
    shown: type[Bar | Lines], total: int, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = shown()
    for _ in range(2):
        progress.begin("files", total)
        progress.step()
        progress.step(2)
        progress.end()
    assert "files" in capsys.readouterr().err
