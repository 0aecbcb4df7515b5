"""The scripts of the pages of the book: each block of commands is in one of them."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.support import book_pages
from tests.support.book_pages import DOCS, PAGES, blocks_of, commands_of, placed, script_of

OWN_TEST = {"team"}  # pages whose test is a program of its own
LISTS = {"commands", "settings", "api", "configuration", "incidents"}
PAGES_WITH_COMMANDS = {each.stem for each in DOCS.glob("*.md") if blocks_of(each.stem)}


def test_each_page_with_commands_has_a_script_and_no_other_one() -> None:
    assert {each.stem for each in PAGES.glob("*.sh")} == PAGES_WITH_COMMANDS - OWN_TEST


@pytest.mark.parametrize("page", sorted(PAGES_WITH_COMMANDS - OWN_TEST))
def test_a_script_has_each_block_of_its_page(page: str) -> None:
    found = script_of(page)
    assert found.script or found.not_run


@pytest.mark.parametrize("page", sorted({each.stem for each in DOCS.glob("*.md")} - LISTS))
def test_each_block_says_what_it_is(page: str) -> None:
    assert not blocks_of(page, "")


def test_commands_end_where_the_shell_ends_them() -> None:
    text = "one a # it's\ntwo \\\n  b\nthree 'c\n d'\ncat <<END\nfour\n\nEND\nfive |\n  six\n# seven\neight\n"
    assert commands_of(text) == [
        "one a # it's\n",
        "two \\\n  b\n",
        "three 'c\n d'\n",
        "cat <<END\nfour\n\nEND\n",
        "five |\n  six\n",
        "# seven\n",
        "eight\n",
    ]
    assert commands_of("$ one\nprinted\n$ two\n") == ["one\n", "two\n"]


def test_names_in_capitals_are_whole_words() -> None:
    assert placed("show ID $ID_TOKEN PID\n", {"ID": "7"}) == "show 7 $ID_TOKEN PID\n"
    assert placed("a/b a/bc\n", {"a/b": "x"}) == "x xc\n"


def test_a_script_that_renames_what_its_page_has_not_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "page.md").write_text("```sh\none\ntwo\n```\n")
    for name in ("DOCS", "PAGES"):
        monkeypatch.setattr(book_pages, name, tmp_path)
    for old, error in (("one", ""), ("three", "renames what is not there: {'three'}")):
        (tmp_path / "page.sh").write_text(f"#: here {old} = 1\n#: block\n")
        with pytest.raises(AssertionError, match=re.escape(error)) if error else nullcontext():
            assert script_of("page").script == "1\ntwo\n"
