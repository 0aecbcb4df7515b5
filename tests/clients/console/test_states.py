"""
What the walk does not show: empty lists, pages for visitors, refused forms, questions, menus and windows that are open,
and every page of the documentation; axe-core finds nothing against WCAG 2.2 AA, and nothing is cut or hidden.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests.support.chromium import Chromium, chromium
from tests.support.console_content import CONFIG
from tests.support.container_clients import ADMIN, ok
from tests.support.http_client import HttpClient
from tests.support.server_process import running

LOOKS = ((False, 1280), (True, 390))  # dark or not, and the width
NEW = "/ui/admin/repositories/new"
EMPTY = (
    *("/ui/", "/ui/search?q=nothing", "/ui/projects", "/ui/waiting", "/ui/account", "/ui/account/tokens"),
    *("/ui/repositories/main/py", "/ui/repositories/main/py/tree/", "/ui/repositories/main/py/stages"),
    *("/ui/repositories/main/py/trash", "/ui/repositories/main/py/settings/webhooks", "/ui/admin/users"),
    *("/ui/repositories/main/py/settings/retention", "/ui/repositories/main/py/settings/rules", "/ui/admin/groups"),
    *("/ui/admin/stages", "/ui/admin/trash", "/ui/admin/quotas", "/ui/admin/policy", "/ui/admin/webhooks"),
    *("/ui/admin/hosts", "/ui/admin/jobs", "/ui/admin/tokens", "/ui/admin/health", f"{NEW}?format=python&type=Virtual"),
)
VISITORS = ("/ui/", "/ui/login", "/ui/repositories/main/py", "/ui/search?q=a", "/ui/docs", "/ui/nowhere", "/ui/device")
REFUSED = (  # a page, the end of the address of its form, and what is wrong in it
    ("/ui/admin/users", "/ui/admin/users", {"username": "a b", "name": "Ada"}),
    ("/ui/admin/groups", "/ui/admin/groups", {"name": "a b"}),
    ("/ui/admin/quotas", "/ui/admin/quotas", {"place": "main/py", "bytes": "1x"}),
    ("/ui/admin/webhooks", "/ui/admin/webhooks", {"name": "b", "url": "nope", "events": "stage.*"}),
    ("/ui/projects", "/ui/projects", {"key": "a b", "name": "Core"}),
    (f"{NEW}?format=npm&type=Proxy", NEW, {"name": "far", "/proxy/routes/0/url": "nope"}),
    (f"{NEW}?format=python&type=Virtual", NEW, {"name": "v"}),
    ("/ui/repositories/main/py/settings/rules?example=young", "/rules/one", {"/name": "r", "/match/age_days": "0"}),
)


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A browser at a server with nothing but an empty repository."""
    with running(tmp_path_factory.mktemp("states"), CONFIG) as server:
        ok(HttpClient(server.url, ADMIN).post_json("/api/policy/blocks", {"repository": "main/py", "package": "demo"}))
        with chromium(server.url, tmp_path_factory.mktemp("profile")) as found:
            yield found


def faults(browser: Chromium, what: str) -> list[object]:
    """What is wrong with what is shown now, as it looks in all ways."""
    wrong: list[object] = []
    for dark, width in LOOKS:
        browser.look(dark=dark, width=width)
        browser.driver.execute_script("scrollTo(0, 0);")  # the bar at the top is over what was scrolled
        wrong += [(what, width, each) for each in (*browser.misplaced(), *browser.findings())]
    return wrong


def test_pages_for_visitors(window: Chromium) -> None:
    wrong: list[object] = []
    for path in VISITORS:
        window.show(path)
        wrong += faults(window, path)
    window.show("/ui/login")
    window.fill("/ui/login", username="admin", password="wrong")
    window.wait_for("wrong")
    wrong += faults(window, "refused login")
    assert not wrong, "\n".join(map(str, wrong))


def test_empty_pages_refused_forms_and_what_is_open(window: Chromium) -> None:
    window.log_in(*ADMIN)
    wrong: list[object] = []
    for path in EMPTY:
        window.show(path)
        wrong += faults(window, path)
    for path, action, fields in REFUSED:
        window.look(dark=False, width=1280)
        window.show(path)
        window.unfold()
        window.driver.execute_script("for (const each of document.forms) each.noValidate = true;")
        window.fill(action, **fields)
        waiting = WebDriverWait(window.driver, 30)
        waiting.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, "[aria-invalid]"), f"{path} marks no field")
        wrong += faults(window, f"refused {path}")
    window.show("/ui/")
    window.find("body").send_keys("?")
    assert "search packages" in window.find("dialog[open]").text
    wrong += faults(window, "keys")
    window.find("body").send_keys(Keys.ESCAPE)
    window.find("body").send_keys(Keys.CONTROL, "k")
    wrong += faults(window, "go to")
    window.show("/ui/")
    window.find("details.me > summary").click()
    wrong += [("menu", each) for each in window.findings()]  # it lies over the page
    window.run_scripts(False)
    window.show("/ui/admin/policy")
    window.find("form[action$='/remove'] button").click()
    window.run_scripts(True)
    assert "Are you sure?" in window.text
    wrong += faults(window, "question")
    assert not wrong, "\n".join(map(str, wrong))


def test_pages_of_the_documentation(window: Chromium) -> None:
    window.look(dark=True, width=390)
    window.show("/ui/docs")
    links = window.driver.find_elements(By.CSS_SELECTOR, ".book nav a, main a")
    paths = {each.get_attribute("href").removeprefix(window.url).partition("#")[0] for each in links}
    pages = sorted(each for each in paths if each.startswith("/ui/docs/") and "." not in each)
    assert len(pages) > 40
    wrong: list[object] = []
    for path in pages:
        window.show(path)
        wrong += [(path, each) for each in (*window.misplaced(), *window.findings())]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("width", [390, 810, 1280])
@pytest.mark.parametrize("path", ["/ui/admin/health", "/ui/docs/proxies", "/ui/admin/users", "/ui/waiting"])
def test_no_side_column_lies_over_the_footer_of_a_low_window(window: Chromium, width: int, path: str) -> None:
    window.log_in(*ADMIN)
    metrics = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    window.show(path)
    window.driver.execute_script("scrollTo(0, document.documentElement.scrollHeight);")
    found = window.driver.execute_script(
        """
        const footer = document.querySelector('footer').getBoundingClientRect();
        return [...document.querySelectorAll('main *, .top *')]
          .filter(each => each.checkVisibility() && each.getBoundingClientRect().height)
          .filter(each => each.getBoundingClientRect().bottom > footer.top + 1)
          .map(each => each.outerHTML.slice(0, 80));
        """
    )
    assert found == []
