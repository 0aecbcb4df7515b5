"""
Every kind of page with realistic content, at several widths, light and dark: nothing is cut or hidden, and axe-core
finds nothing against WCAG 2.2 AA.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pkgrepo.web.rendering.languages import load_languages
from tests.support.chromium import Chromium, chromium
from tests.support.console_content import CONFIG, WALKED, fill, fill_more
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient
from tests.support.server_process import running

WIDTHS = (390, 810, 1024, 1440)  # pixels: a telephone, a tablet, a small window, a large one
CHECKED = ((False, 1280), (False, 390), (True, 390), (True, 1280))  # dark or not, and the width, for axe-core
TEXTS = """
const texts = document.createTreeWalker(document.querySelector("body"), NodeFilter.SHOW_TEXT), found = [];
while (texts.nextNode()) {
  const text = texts.currentNode;
  if (!text.parentElement.closest('[lang=en], [translate=no], code, pre, script')) found.push(text.data.trim());
}
return found;
"""  # what a page says that is not in English on purpose
LARGEST = 50 * 1024  # bytes of a page

pytestmark = pytest.mark.timeout(900)  # s; a test goes over all pages, for minutes on a busy machine


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Chromium, str]]:
    """A browser of the admin, and the page of a job."""
    folder = tmp_path_factory.mktemp("walk")
    with running(folder, CONFIG) as server:
        wire = HttpClient(server.url, ADMIN)
        job = fill(wire, hostile=True)
        [catalog] = folder.rglob("pkgrepo.db")
        fill_more(wire, catalog)
        with chromium(server.url, tmp_path_factory.mktemp("profile")) as found:
            found.log_in(*ADMIN)
            yield found, job


def test_nothing_is_cut_hidden_or_unreadable(window: tuple[Chromium, str]) -> None:
    browser, job = window
    wrong: list[object] = []
    for path in (*WALKED, job):
        browser.show(path)
        if browser.size() > LARGEST:
            wrong.append((path, "bytes", browser.size()))
        for width in WIDTHS:  # which colours there are does not change where anything is
            browser.look(dark=False, width=width)
            wrong += [(path, width, each) for each in browser.misplaced()]
        for dark, width in CHECKED:
            browser.look(dark=dark, width=width)
            wrong += [(path, "dark" if dark else "light", width, each) for each in browser.findings()]
            browser.unfold()  # what is folded is seen at all widths but the first
        # nothing of the hostile texts runs, or loads anything
        assert browser.driver.execute_script("return window.hacked") is None, path
        own = tuple(f"{browser.url}/{each}/" for each in ("ui/static", "ui/docs/pictures", "badge", "api/job"))
        wrong += [(path, "loads", each) for each in browser.requested() if not each.startswith(own)]
    assert not wrong, "\n".join(map(str, wrong))
    browser.show("/ui/repositories/main/py/packages/demo")
    assert "click" in browser.find(".prose").text


@pytest.mark.parametrize("language", [each for each in load_languages() if each != "en"])
def test_nothing_is_cut_or_english_in_other_languages(window: tuple[Chromium, str], language: str) -> None:
    browser, job = window
    browser.look(dark=False, width=WIDTHS[-1])
    browser.driver.add_cookie({"name": "pkgrepo_language", "value": language, "path": "/"})
    translations = load_languages()[language].messages
    # a sentence or a label; single words may be data
    english = {text for text, forms in translations.items() if text not in forms and " " in text}
    wrong: list[object] = []
    try:
        for path in (*WALKED, job):
            browser.show(path)
            shown: list[str] = browser.driver.execute_script(TEXTS)
            wrong += [(path, "is English", each) for each in shown if each in english]
            if browser.size() > LARGEST:
                wrong.append((path, "bytes", browser.size()))
            for width in (390, 810, 1280):
                browser.look(dark=False, width=width)
                wrong += [(path, width, each) for each in browser.misplaced()]
    finally:
        browser.driver.delete_cookie("pkgrepo_language")
    assert not wrong, "\n".join(map(str, wrong))
