"""Chromium, driven by Selenium: what a person sees and does, and what axe-core finds on a page."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.support.client_programs import CLIENTS, absent, program
from tests.support.timeouts import TIMEOUT_S

WIDE, NARROW = 1400, 360  # pixels
# Web Content Accessibility Guidelines 2.2, levels A and AA. The size of targets is off by default.
_FINDINGS = """
const done = arguments[arguments.length - 1];
const values = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
const options = { runOnly: { type: 'tag', values }, rules: { 'target-size': { enabled: true } } };
axe.run({ resultTypes: ['violations'], ...options }).then(({ violations }) => done(violations));
"""
_UNFOLD = "for (const each of document.querySelectorAll('details:not(.me)')) each.open = true;"
_OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth;"
_BROKEN_WORDS = r"""
const broken = [], range = document.createRange();
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode;
  if (text.parentElement.closest('code, pre, .row, .crumbs, .brief, textarea, select, script')) continue;
  if (text.parentElement.matches('details:not([open])')) continue;
  for (const word of text.data.matchAll(/(?<!\S)[\p{L}\p{N}]{2,14}(?!\S)/gu)) {
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    if (/\p{Script=Han}/u.test(word[0])) continue; // whose lines end anywhere
    if (new Set([...range.getClientRects()].map(each => Math.round(each.top))).size > 1) broken.push(word[0]);
  }
}
return broken;
"""


# Controls whose text does not fit them or that stick out of the window, and texts and controls over each other. What is
# cut on purpose scrolls, so that it can be read; a copy button lies in the corner of its snippet.
_COLLISIONS = r"""
const found = [], boxes = [], range = document.createRange();
const name = each => `${each.tagName.toLowerCase()} "${(each.textContent || each.name || '').trim().slice(0, 40)}"`;
const closed = each => each.matches('details:not([open])');
const clip = (box, each) => {
  let { left, right, top, bottom } = box;
  for (let at = each; at && at !== document.body; at = at.parentElement) {
    if (getComputedStyle(at).overflowX === 'visible') continue;
    const outer = at.getBoundingClientRect();
    left = Math.max(left, outer.left);
    right = Math.min(right, outer.right);
  }
  return { left, right, top, bottom };
};
const within = each => each.closest('pre, .skip, .try [disabled], dialog, svg, textarea, select');
const controls = 'a.button, button, .chips a, .tabs a, summary, .tag, input:not([type=hidden], [type=radio])';
for (const each of document.querySelectorAll(controls)) {
  if (!each.checkVisibility() || within(each)) continue;
  const box = each.getBoundingClientRect();
  if (!box.width) continue;
  const cut = each.tagName !== 'INPUT' && each.clientWidth && each.scrollWidth > each.clientWidth + 1;
  if (cut) found.push(`clipped: ${name(each)}`);
  if (box.right > innerWidth + 1 || box.left < -1) found.push(`outside: ${name(each)}`);
  if (each.matches('button, input') && !each.matches('.copy')) boxes.push([box, each, name(each)]);
}
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode, parent = text.parentElement;
  const said = text.data.trim();
  if (!said || !parent.checkVisibility() || within(parent) || closed(parent)) continue;
  if (parent.closest('button, option, datalist')) continue;
  range.selectNodeContents(text);
  const shown = `"${said.slice(0, 40)}"`;
  for (const box of range.getClientRects()) if (box.width > 1) boxes.push([clip(box, parent), text, shown]);
}
boxes.sort((a, b) => a[0].top - b[0].top);
for (let at = 0; at < boxes.length; at++) {
  for (let next = at + 1; next < boxes.length && boxes[next][0].top < boxes[at][0].bottom; next++) {
    const [one, first, a] = boxes[at], [two, second, b] = boxes[next];
    if (first === second || first.contains(second) || second.contains(first)) continue;
    const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left);
    const high = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
    if (wide > 3 && high > 6) found.push(`over each other: ${a} and ${b}`);
  }
}
return found.slice(0, 5);
"""


class Chromium:
    """One window; addresses are below ``url``."""

    def __init__(self, driver: Chrome, url: str) -> None:
        self.driver = driver
        self.url = url
        self._axe = False  # whether axe-core comes with each page
        self._dark: bool | None = None

    def show(self, path: str) -> None:
        """Open a page."""
        self.driver.get(self.url + path)

    def look(self, *, dark: bool, width: int) -> None:
        """Prefer dark or light colours from now on, which do not fade, in a window of this width."""
        if dark is not self._dark:
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            features = [scheme, {"name": "prefers-reduced-motion", "value": "reduce"}]
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            self._dark = dark
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def run_scripts(self, run: bool) -> None:
        """Whether pages may run scripts."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not run})

    @property
    def text(self) -> str:
        """The text that is shown."""
        return self.driver.find_element(By.TAG_NAME, "body").text

    @property
    def path(self) -> str:
        """The path of the page that is shown."""
        return self.driver.current_url.removeprefix(self.url)

    def wait_for(self, text: str) -> None:
        """Wait until the page shows a text."""
        waiting = WebDriverWait(self.driver, TIMEOUT_S, ignored_exceptions=[StaleElementReferenceException])
        waiting.until(lambda _: text in self.text, f"the page never shows {text!r}")

    def find(self, selector: str) -> WebElement:
        """The first element of a CSS selector."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def fill(self, form: str, **fields: str) -> None:
        """Type into the fields of a form, given by the end of its address, and send it."""
        element = self.find(f"form[action$='{form}'][method=post]")
        for name, value in fields.items():
            field = element.find_element(By.CSS_SELECTOR, f"[name='{name}']")
            if field.tag_name == "select":
                field.find_element(By.CSS_SELECTOR, f"option[value='{value}'], option").click()
                self.driver.execute_script("arguments[0].value = arguments[1]", field, value)
            else:
                field.clear()
                field.send_keys(value)
        element.submit()

    def log_in(self, username: str, password: str) -> None:
        """Log in by the form."""
        self.show("/ui/login")
        self.fill("/ui/login", username=username, password=password)
        waiting = WebDriverWait(self.driver, TIMEOUT_S)
        waiting.until(
            lambda driver: driver.find_elements(By.CSS_SELECTOR, "form[action='/ui/logout']"), "nobody is logged in"
        )

    def picture(self, file: Path, highest: int = 100_000) -> None:
        """Save a picture of the whole page, or of its first ``highest`` rows of pixels."""
        height = min(highest, self.driver.execute_script("return document.documentElement.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": self.driver.execute_script("return innerWidth"), "height": height, "scale": 1}
        options = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        file.write_bytes(b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]))

    def findings(self) -> list[str]:
        """What axe-core finds on the page against WCAG 2.2 AA."""
        if not self._axe:
            file = CLIENTS / "axe-core" / "node_modules" / "axe-core" / "axe.min.js"
            if not file.exists():
                absent("axe-core is not installed (bin/test installs it)")
            self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": file.read_text()})
            self.driver.execute_script(file.read_text())
            self._axe = True
        found: list[dict[str, Any]] = self.driver.execute_async_script(_FINDINGS)
        return [
            f"{each['id']}: {node['html'][:200]} {node['failureSummary']}" for each in found for node in each["nodes"]
        ]

    def unfold(self) -> None:
        """Open all that is folded on the page."""
        self.driver.execute_script(_UNFOLD)

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.driver.execute_script(_OVERFLOW))

    def misplaced(self) -> list[object]:
        """
        What is wrong with how the page is laid out, if anything.

        The page is wider than the window; words of up to 14 characters go on in another line, which those of code,
        names and paths may; controls are clipped or outside of the window, and texts or controls over each other.
        """
        script = f"return [{', '.join(f'(() => {{{each}}})()' for each in (_OVERFLOW, _BROKEN_WORDS, _COLLISIONS))}]"
        overflow, broken, collisions = self.driver.execute_script(script)
        wider = [("is wider than the window", overflow)] if overflow > 0 else []
        return [*wider, *(("is broken", each) for each in broken), *collisions]

    def size(self) -> int:
        """The bytes of the page itself, uncompressed."""
        script = "return performance.getEntriesByType('navigation')[0].decodedBodySize"
        return int(self.driver.execute_script(script))

    def requested(self) -> list[str]:
        """The addresses from which the page has loaded something."""
        script = "return performance.getEntriesByType('resource').map(each => each.name)"
        return list(self.driver.execute_script(script))


@contextmanager
def chromium(url: str, profile: Path) -> Iterator[Chromium]:
    """A window without a screen; the test is skipped where Chromium is missing."""
    options = ChromeOptions()
    options.binary_location = str(program("chromium"))
    for each in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", f"user-data-dir={profile}"):
        options.add_argument(f"--{each}")
    options.add_argument("--disable-background-networking")
    options.add_argument("--no-proxy-server")
    # Each page runs the same scripts, once: what is compiled stays, and nothing is made faster by watching it run.
    options.add_argument("--js-flags=--no-flush-bytecode --always-sparkplug")
    driver = Chrome(options=options, service=ChromeService(str(program("chromedriver"))))
    try:
        yield Chromium(driver, url)
    finally:
        driver.quit()
