"""Readmes are rendered to HTML that can do nothing."""

from __future__ import annotations

import re

import pytest

from pkgrepo.web.rendering.readme import LONGEST_RENDERED, MOST_HIGHLIGHTED, render_lines, render_readme

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<img src='https://evil.example/x.png'>",
    "![x](https://evil.example/x.png)",
    "[x](javascript:alert(1))",
    "<a href='  JaVaScRiPt:alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<style>*{display:none}</style>",
    "<iframe src='https://evil.example'></iframe>",
    "<form action='https://evil.example'><input name=password></form>",
    "<p class='button' style='position:fixed'>x</p>",
    "<svg onload=alert(1)><a xlink:href='javascript:alert(1)'>x</a></svg>",
    "<base href='https://evil.example'>",
    "<a id='csrf' name='csrf'>x</a>",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
]


@pytest.mark.parametrize("kind", ["text/markdown", "text/x-rst", "text/plain"])
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_readme_runs_or_loads(text: str, kind: str) -> None:
    html = str(render_readme(text, kind)).lower()
    for word in (
        "<script",
        "<img src=",
        "<style",
        "<iframe",
        "<form",
        "<svg",
        "<base",
        'href="javascript',
        'href="data',
    ):
        assert word not in html
    assert not (
        kind == "text/markdown" and any(word in html for word in (" onerror=", " style=", ' id="csrf"', "<input"))
    )


def test_markdown_and_restructured_text_become_html() -> None:
    html = render_readme(
        "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\ndef f(): pass\n```\n", "text/markdown"
    )
    assert "<h1>Title</h1>" in html
    assert "<td>1</td>" in html
    assert '<span class="k">def</span>' in html
    html = render_readme("Title\n=====\n\n*text* and `a link <https://x.example/>`_\n", "text/x-rst")
    assert "<em>text</em>" in html
    assert 'rel="nofollow noopener noreferrer"' in html


def test_images_become_links() -> None:
    html = render_readme("![a <b>](https://x.example/a.png) ![](x.png) <img src=y.png alt=z>", "text/markdown")
    assert '<a href="https://x.example/a.png" rel="nofollow noopener noreferrer">a &lt;b&gt;</a>' in html
    assert "<img" not in html


def test_restructured_text_reads_no_files() -> None:
    for text in (
        ".. include:: /etc/passwd\n",
        ".. raw:: html\n   :file: /etc/passwd\n",
        ".. raw:: html\n\n   <script>\n",
    ):
        html = render_readme(text, "text/x-rst")
        assert "root:" not in html
        assert "<script" not in html


def test_what_is_wrong_or_too_long_is_shown_as_it_is() -> None:
    assert "&lt;b&gt;" in render_readme("<b>" + "x" * LONGEST_RENDERED, "text/markdown")
    for wrong in (".. nonsense::\n", "".join("  " * depth + "- x\n\n" for depth in range(400))):
        assert render_readme(f"Title\n=====\n\n{wrong}", "text/x-rst").startswith("<pre ")


def test_long_code_and_unknown_languages_are_not_highlighted() -> None:
    for language, code in (("perl", "$x=~s{" * 300), ("python", "def f(): pass\n" * 1000), ("no-language", "def f()")):
        assert "<span" not in render_readme(f"```{language}\n{code}\n```\n", "text/markdown")
    block = "```python\ndef f(): pass\n" + "#" * 1900 + "\n```\n\n"
    assert render_readme(block * 20, "text/markdown").count('<span class="k">def</span>') == 8


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[![build & <b>](https://x.example/badge.svg)](https://x.example/ci)", "text/markdown"),
        ('<a href="https://x.example/ci"><img src="badge.svg" alt="build &amp; &lt;b&gt;"></a>', "text/markdown"),
        (".. image:: badge.svg\n   :alt: build & <b>\n   :target: https://x.example/ci\n", "text/x-rst"),
    ],
    ids=["markdown", "html", "restructured"],
)
def test_a_badge_is_a_link_with_the_text_of_its_image(text: str, kind: str) -> None:
    html = render_readme(text, kind)
    assert re.search(r'<a href="https://x.example/ci"[^>]*>\s*build &amp; &lt;b&gt;\s*</a>', html), html
    assert html.count("<a ") == 1


def test_lines_of_a_file_are_marked_in_its_language() -> None:
    hostile = "'''a\n<script>'''\n\nx = 1  # </span>\n"
    lines = render_lines(hostile, "pkg/setup.py")
    assert len(lines) == 4
    assert lines[3].startswith('<span class="n">x</span>')
    assert all("<script" not in each and each.count("<span") == each.count("</span>") for each in lines)
    assert render_lines("<b>\n", "notes.odd") == ["&lt;b&gt;"]
    long = "x = 1\n" * MOST_HIGHLIGHTED
    assert render_lines(long, "a.py")[0] == "x = 1"


def test_plain_prose_has_paragraphs_and_what_is_laid_out_stays_as_it_is() -> None:
    assert render_readme("One <b>\ntwo.\n\n \nThree.\n", "text/plain") == "<p>One &lt;b&gt;\ntwo.</p><p>Three.</p>"
    for laid_out in ("Title\n=====\n", "Usage:\n    pip install\n", "a   b\n", "x" * (LONGEST_RENDERED + 1)):
        assert render_readme(laid_out, "text/plain").startswith('<pre tabindex="0">')
