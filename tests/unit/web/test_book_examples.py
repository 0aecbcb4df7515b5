"""What the pages of the book show as settings and as rules is read by what reads these."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from pkgrepo.config.reading import ConfigError, read_config
from pkgrepo.repositories.policy.schema import PolicyRule
from tests.support.book_pages import DOCS, blocks_of

NOT_OURS = {"cargo"}  # of the program that the page is about
WITH_SETTINGS = sorted(each.stem for each in DOCS.glob("*.md") if blocks_of(each.stem, "toml"))


@pytest.mark.parametrize("page", [each for each in WITH_SETTINGS if each not in NOT_OURS])
def test_settings_are_read(page: str, tmp_path: Path) -> None:
    text = "\n".join(blocks_of(page, "toml"))
    for name in re.findall(r'file = "([\w./-]+)"', text):  # which a reader has
        place = tmp_path / name.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("correct horse battery\n")
        place.chmod(0o600)
    (tmp_path / "pkgrepo.toml").write_text(text.replace('file = "/', f'file = "{tmp_path}/'))
    try:
        read_config(tmp_path / "pkgrepo.toml")
    except ConfigError as error:
        pytest.fail("\n".join(error.problems))


def test_rules_are_read() -> None:
    for text in blocks_of("policy", "json"):
        assert msgspec.json.decode(text, type=PolicyRule).name
