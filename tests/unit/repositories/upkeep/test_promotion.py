from __future__ import annotations

import pytest

from pkgrepo.errors import Conflict
from pkgrepo.repositories.upkeep.promotion import Promotion
from tests.support.auth import make_repository

ONE, TWO = "ab" * 32, "cd" * 32


def test_what_was_added_since_the_rules_were_asked_is_not_copied() -> None:
    source = make_repository()
    asked = Promotion(source=source, move=False, reuse=False, burn=False, asked=[ONE])
    asked.check([ONE])
    with pytest.raises(Conflict, match="added"):
        asked.check([ONE, TWO])
    Promotion(source=source, move=False, reuse=False, burn=False).check([TWO])
