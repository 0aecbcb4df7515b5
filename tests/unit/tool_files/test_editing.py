"""Entries are put into texts of each syntax, and what cannot be changed safely is refused."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Conflict
from pkgrepo.tool_files.editing import edit, render
from pkgrepo.tool_files.values import Element, Entry, Item, Setting, Syntax, ToolFile


def changed(syntax: Syntax, text: str, *entries: Entry, mark: str = "") -> str:
    return edit(ToolFile("x", syntax, entries), text, mark)


KEY = Setting(("a", "k"), "v")
CASES = [
    (Syntax.LINES, "", Setting(("k",), "v"), "k=v\n"),
    (Syntax.LINES, "x=1", Setting(("k",), "v"), "x=1\nk=v\n"),
    (Syntax.LINES, "k = old\nx=1\n", Setting(("k",), "v"), "k=v\nx=1\n"),
    (Syntax.INI, "", KEY, "[a]\nk = v\n"),
    (Syntax.INI, "[a]\nx = 1\n\n[b]\ny = 2\n", KEY, "[a]\nx = 1\nk = v\n\n[b]\ny = 2\n"),
    (Syntax.INI, "[a]\nK: 1\n  2\nx = 1\n", KEY, "[a]\nk = v\nx = 1\n"),
    (Syntax.INI, "[a]\nk =\n    one\n", Item(("a", "k"), "two"), "[a]\nk =\n    one\n    two\n"),
    (Syntax.INI, "[a]\nk = one two\n", Item(("a", "k"), "two"), "[a]\nk = one two\n"),
    (Syntax.TOML, "", KEY, '[a]\nk = "v"\n'),
    (Syntax.TOML, "# top\n[b]\nx = 1\n", Setting(("k",), "v"), 'k = "v"\n\n# top\n[b]\nx = 1\n'),
    (Syntax.TOML, "[a]\nk = [\n  1,\n]\nx = 1\n# end\n", KEY, '[a]\nk = "v"\nx = 1\n# end\n'),
    (
        Syntax.TOML,
        '[[l]]\nn = "p"\nu = 1\n\n[[l]]\nn = "q"\n',
        Item(("l",), {"n": "p", "d": True}, "n"),
        '[[l]]\nn = "p"\nd = true\n\n[[l]]\nn = "q"\n',
    ),
    (
        Syntax.TOML,
        'x = 1\n\n[[l]]\nn = "q"\n',
        Item(("l",), {"n": "p"}, "n", first=True),
        'x = 1\n\n[[l]]\nn = "p"\n\n[[l]]\nn = "q"\n',
    ),
    (Syntax.YAML, "", Item(("l",), "v"), 'l:\n  - "v"\n'),
    (Syntax.YAML, "l:\n- a\n- b\nx: 1\n", Item(("l",), "v", first=True), 'l:\n- "v"\n- a\n- b\nx: 1\n'),
    (Syntax.YAML, "l: []\nx: 1\n", Item(("l",), "v"), 'l:\n  - "v"\nx: 1\n'),
    (Syntax.YAML, "a:\n    x: 1 # one\ny: 2\n", KEY, 'a:\n    x: 1 # one\n    k: "v"\ny: 2\n'),
    (
        Syntax.YAML,
        "l:\n- n: p\n  u: old\n- n: q\n",
        Item(("l",), {"n": "p", "u": "new"}, "n"),
        'l:\n- n: "p"\n  u: "new"\n- n: q\n',
    ),
]


ITEM = Element("servers", "<server>\n  <id>p</id>\n</server>\n")
NEW = "    <server>\n      <id>p</id>\n    </server>\n"
ROWS = "<s>\n\t<servers>\n\t\t<server><id>q</id></server>\n\t\t{}\n\t</servers>\n</s>\n"
CASES += [
    (Syntax.JSON, "", KEY, '{\n\t"a": {\n\t\t"k": "v"\n\t}\n}\n'),
    (Syntax.JSON, '{\n  "x": 1\n}\n', Setting(("k",), "v"), '{\n  "x": 1,\n  "k": "v"\n}\n'),
    (Syntax.NETRC, "", Setting(("h", "login"), "me"), "machine h login me\n"),
    (Syntax.NETRC, "machine h\n\tpassword old\n", Setting(("h", "password"), "new"), "machine h\n\tpassword new\n"),
    (
        Syntax.NETRC,
        "macdef init\nmachine h password x\n\nmachine g login a\ndefault login b\n",
        Setting(("h", "password"), "p"),
        "macdef init\nmachine h password x\n\nmachine g login a\nmachine h password p\ndefault login b\n",
    ),
    (Syntax.XML, "", ITEM, f"<settings>\n  <servers>\n{NEW}  </servers>\n</settings>\n"),
    (Syntax.XML, "<s><servers/></s>\n", ITEM, f"<s><servers>\n{NEW}  </servers></s>\n"),
    (
        Syntax.XML,
        ROWS.format("<server><id>p</id><x/></server>"),
        ITEM,
        ROWS.format("<server>\n    <id>p</id>\n  </server>"),
    ),
]


@pytest.mark.parametrize(("syntax", "text", "entry", "expected"), CASES)
def test_an_entry_is_put_into_a_text(syntax: Syntax, text: str, entry: Entry, expected: str) -> None:
    assert changed(syntax, text, entry) == expected
    assert changed(syntax, expected, entry) == expected


@pytest.mark.parametrize(
    ("syntax", "text", "entry"),
    [
        (Syntax.TOML, "a = { k = 1 }\n", KEY),
        (Syntax.TOML, "a.x = 1\n", KEY),
        (Syntax.TOML, "a = ", KEY),
        (Syntax.TOML, 's = """\n[a]\n"""\n[a]\nx = 1\n', KEY),
        (Syntax.YAML, "a: &x {k: 1}\n", KEY),
        (Syntax.YAML, "- 1\n", KEY),
        (Syntax.YAML, "{l: [1]}\n", Item(("l",), "v")),
        (Syntax.INI, "k = 1\n", KEY),
        (Syntax.JSON, '{"a": 1}', KEY),
        (Syntax.JSON, "[]", KEY),
        (Syntax.JSON, "{", KEY),
        (Syntax.XML, "<settings>", ITEM),
        (Syntax.XML, '<!DOCTYPE s [<!ENTITY a "b">]><s>&a;</s>', ITEM),
    ],
)
def test_a_text_that_cannot_be_changed_safely_is_refused(syntax: Syntax, text: str, entry: Entry) -> None:
    with pytest.raises(Conflict):
        changed(syntax, text, entry)


def test_a_mark_stands_before_new_lines() -> None:
    assert changed(Syntax.LINES, "x=1\n", Setting(("k",), "v"), mark="us") == "x=1\n# us\nk=v\n"
    assert changed(Syntax.INI, "[b]\nx = 1\n", KEY, mark="us") == "[b]\nx = 1\n\n# us\n[a]\nk = v\n"
    assert render(ToolFile("x", Syntax.INI, (KEY,))) == "[a]\nk = v\n"
