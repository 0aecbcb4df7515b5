"""Every form of the console by keyboard alone: what takes the focus, shows it, and sends the form; windows close."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.support.chromium import Chromium, chromium
from tests.support.console_content import CONFIG, WALKED, fill, fill_more
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient
from tests.support.server_process import running
from tests.support.timeouts import TIMEOUT_S

WIDTH = 1280  # pixels
MOST_TABS = 600  # on one page

# The controls of a page that Tab must reach; of a group of radio buttons one is enough.
_CONTROLS = """
return [...document.querySelectorAll('form :is(input:not([type=hidden]), select, textarea, button), summary, dialog')]
  .filter(each => each.checkVisibility({ visibilityProperty: true }) && !each.disabled && each.type !== 'radio')
"""
# Notes which controls get the focus, whether that can be seen, and which forms are sent, which sends nothing.
_WATCH = """
window.reached = new Set();
window.unseen = [];
window.sent = [];
document.addEventListener('focusin', ({ target }) => {
  reached.add(target);
  const style = getComputedStyle(target), box = target.getBoundingClientRect();
  const label = target.type === 'radio' ? getComputedStyle(target.nextElementSibling) : style;
  const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  const shown = label.outlineStyle !== 'none' && parseFloat(label.outlineWidth) >= 2;
  const covered = at && !target.contains(at) && !at.contains(target) && !target.closest('label')?.contains(at);
  if (!shown || covered) unseen.push(`${covered ? 'covered' : 'no outline'}: ${target.outerHTML.slice(0, 120)}`);
});
document.addEventListener('submit', event => {
  event.preventDefault();
  event.stopImmediatePropagation();
  sent.push(event.target);
}, true);
for (const form of document.forms) form.noValidate = true;
"""
_MISSED = f"""
const controls = (() => {{ {_CONTROLS} }})();
return controls.filter(each => !reached.has(each)).map(each => each.outerHTML.slice(0, 160));
"""
_BUTTONS = """
return [...document.forms].map(form => [...form.elements].find(
    each => each.matches('button:not([type=button])') && each.checkVisibility({ visibilityProperty: true })) ?? null);
"""
_FORMS = r"""
return [...document.forms].map(form => form.getAttribute('method') + ' ' +
    (form.getAttribute('action') ?? '').replace(/[0-9a-f-]{36}/g, 'id'));
"""

pytestmark = pytest.mark.timeout(900)  # s; a test goes over all pages, for minutes on a busy machine


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Chromium, str]]:
    """A browser of the admin at a server with all kinds of pages, and the page of a job."""
    folder = tmp_path_factory.mktemp("keys")
    with running(folder, CONFIG) as server:
        wire = HttpClient(server.url, ADMIN)
        job = fill(wire, hostile=False)
        [catalog] = folder.rglob("pkgrepo.db")
        fill_more(wire, catalog)
        with chromium(server.url, tmp_path_factory.mktemp("profile")) as found:
            found.driver.set_script_timeout(TIMEOUT_S)
            found.log_in(*ADMIN)
            found.look(dark=False, width=WIDTH)
            yield found, job


def test_every_form_is_reached_seen_and_sent_by_keyboard(window: tuple[Chromium, str]) -> None:
    browser, job = window
    known: set[str] = set()
    wrong: list[object] = []
    for path in (*WALKED, job):
        browser.show(path)
        forms = set(run(browser, _FORMS))
        if forms <= known:
            continue
        known |= forms
        run(browser, _WATCH)
        wrong += [(path, "does not open", each) for each in opened_by_key(browser)]
        wrong += [(path, "Tab does not reach", each) for each in walked(browser)]
        wrong += [(path, each) for each in run(browser, "return unseen")]
        wrong += [(path, "is not sent", each) for each in unsent(browser)]
    assert not wrong, "\n".join(map(str, wrong))
    assert len(known) > 40, known


def test_windows_close_by_escape_and_give_the_focus_back(window: tuple[Chromium, str]) -> None:
    browser, _ = window
    for path in ("/ui/", "/ui/admin/users", "/ui/repositories/main/py/packages/demo"):
        browser.show(path)
        place = browser.find("main a[href]")
        for keys in (Keys.CONTROL + "k", "?"):
            browser.driver.execute_script("arguments[0].focus()", place)
            press(browser, keys)
            assert run(browser, "return document.querySelectorAll('dialog[open]').length") == 1, (path, keys)
            assert run(browser, "return document.activeElement.closest('dialog') !== null"), (path, keys)
            press(browser, Keys.ESCAPE)
            assert run(browser, "return document.querySelectorAll('dialog[open]').length") == 0, (path, keys)
            assert browser.driver.switch_to.active_element == place, (path, keys)
        menu = browser.find(".me > summary")
        browser.driver.execute_script("arguments[0].focus()", menu)
        press(browser, Keys.ENTER + Keys.TAB)
        assert browser.driver.switch_to.active_element.text == "Account"
        press(browser, Keys.ESCAPE)
        assert browser.driver.switch_to.active_element == menu


def test_a_question_that_is_answered_no_gives_the_focus_back(window: tuple[Chromium, str]) -> None:
    browser, _ = window
    browser.show("/ui/admin/users/ada")
    button = browser.find("form[data-confirm] button.danger")
    browser.driver.execute_script("arguments[0].focus()", button)
    press(browser, Keys.ENTER)
    browser.driver.switch_to.alert.dismiss()
    assert browser.driver.switch_to.active_element == button
    assert browser.path.startswith("/ui/admin/users/")


def opened_by_key(browser: Chromium) -> list[str]:
    """Open everything that is folded by Enter, also what is in it; what stays closed."""
    for _ in range(3):  # levels
        closed = run(browser, "return [...document.querySelectorAll('details:not([open], .me) > summary')]")
        for each in closed:
            browser.driver.execute_script("arguments[0].focus()", each)
            press(browser, Keys.ENTER)
    script = (
        "return [...document.querySelectorAll('details:not([open], .me)')].map(each => each.outerHTML.slice(0, 160))"
    )
    return list(run(browser, script))


def walked(browser: Chromium) -> list[str]:
    """Go through the page by Tab from its beginning; the controls that were not reached."""
    run(browser, "document.activeElement.blur(); scrollTo(0, 0); getSelection().removeAllRanges()")
    for _ in range(0, MOST_TABS, 40):
        press(browser, Keys.TAB * 40)
        if not run(browser, _MISSED):
            return []
    return list(run(browser, _MISSED))


def unsent(browser: Chromium) -> list[str]:
    """The forms that neither Enter nor Space on their buttons sends."""
    wrong = []
    addresses = run(browser, "return [...document.forms].map(each => each.getAttribute('action'))")
    for at, (address, button) in enumerate(zip(addresses, run(browser, _BUTTONS), strict=True)):
        if button is None:
            if run(browser, f"return document.forms[{at}].checkVisibility() && !document.forms[{at}].closest('.top')"):
                wrong.append(f"{address}: it has no button")
            continue
        for key in (Keys.ENTER, Keys.SPACE):
            browser.driver.execute_script("sent.length = 0; arguments[0].focus()", button)
            press(browser, key)
            if not run(browser, "return sent.length"):
                wrong.append(f"{address}: {'Enter' if key == Keys.ENTER else 'Space'}")
    return wrong


def press(browser: Chromium, keys: str) -> None:
    """Press keys where the focus is; with the control key, together."""
    actions = ActionChains(browser.driver, duration=0)
    if keys.startswith(Keys.CONTROL):
        actions.key_down(Keys.CONTROL).send_keys(keys[1:]).key_up(Keys.CONTROL)
    else:
        actions.send_keys(keys)
    actions.perform()


def run(browser: Chromium, script: str) -> Any:
    """The result of a script."""
    return browser.driver.execute_script(script)
