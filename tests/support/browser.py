"""A browser without scripts over a server in memory: it keeps cookies, and sends forms with their hidden fields."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from attrs import Factory, define

from tests.support.memory_server import PASSWORD, Reply, Stack

CHROMIUM = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Sec-Fetch-Mode": "navigate",
}
BASE = "http://registry.example"


@define
class Page:
    """A page as it is shown: its status, text, links and forms."""

    status: int
    headers: dict[str, str]
    html: str
    text: str = ""
    links: list[str] = Factory(list)
    forms: dict[str, dict[str, str]] = Factory(dict)  # fields with their values, by the action of the form
    languages: dict[str, str] = Factory(dict)  # the fields of the form that every page has at its foot


class _Reader(HTMLParser):
    def __init__(self, page: Page) -> None:
        super().__init__()
        self.page = page
        self._texts: list[str] = []
        self._action = ""
        self._select = ""
        self._area = ""
        self._joins = False  # after a <wbr>, which is nothing to a reader
        self._option: list[str] | None = None  # the text of an option without a value

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in found:
            self.page.links.append(found["href"])
        elif tag == "wbr":
            self._joins = True
        elif tag == "form":
            self._action = found.get("action", "")
            self.page.forms.setdefault(self._action, {})
        elif tag == "select":
            self._select = found.get("name", "")
        elif tag == "option" and self._select:
            fields = self.page.forms.setdefault(self._action, {})
            if self._select not in fields or "selected" in found:
                fields[self._select] = found.get("value", "")
                self._option = None if "value" in found else []
        elif tag in {"input", "textarea"} and "name" in found and self._action:
            boxed = found.get("type") in {"checkbox", "radio"}
            if not boxed or "checked" in found:
                self.page.forms.setdefault(self._action, {})[found["name"]] = found.get("value", "")
            self._area = found["name"] if tag == "textarea" else ""

    def handle_endtag(self, tag: str) -> None:
        self._joins = False
        if tag == "form":
            self._action = ""
        elif tag == "option" and self._option is not None:
            self.page.forms[self._action][self._select] = "".join(self._option).strip()
            self._option = None
        elif tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._joins:
            self._texts[-1] += data
            self._joins = False
        else:
            self._texts.append(data)
        if self._area:
            self.page.forms[self._action][self._area] += data
        if self._option is not None:
            self._option.append(data)

    def close(self) -> None:
        super().close()
        self.page.text = " ".join(" ".join(self._texts).split())
        self.page.languages = self.page.forms.pop("/ui/language", {})


class Browser:
    """A browser at a server; see the module."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.cookie = ""

    async def raw(self, method: str, path: str, form: dict[str, Any] | None = None, **headers: str) -> Reply:
        """Send one request, and keep the cookie that it sets; redirects are not followed."""
        fields = {**CHROMIUM, **headers} | ({"Cookie": self.cookie} if self.cookie else {})
        data = None if form is None else urlencode(form, doseq=True).encode()
        if data is not None:
            fields.setdefault("Origin", BASE)
        reply = await self.stack.call(method, path, who=None, headers=fields, raw=data)
        if "set-cookie" in reply.headers:
            self.cookie = reply.headers["set-cookie"].partition(";")[0]
        return reply

    async def get(self, path: str) -> Page:
        """Show a page of the console, after redirects."""
        for _ in range(5):
            reply = await self.raw("GET", path)
            if reply.status != 303:
                return self._page(reply)
            path = reply.headers["location"].removeprefix(BASE)
        raise AssertionError(f"redirects without end: {path}")

    async def send(self, page: Page, action: str, **fields: Any) -> Page:
        """Send a form of a page with these values, and show where it leads."""
        sure = {"sure": "1"} if "ask" in page.forms[action] else {}  # what a form asks first is answered
        reply = await self.raw("POST", action, page.forms[action] | sure | fields)
        if reply.status == 303:
            return await self.get(reply.headers["location"].removeprefix(BASE))
        return self._page(reply)

    async def log_in(self, username: str = "admin", password: str = PASSWORD) -> Page:
        """Log in by the form, and show the first page."""
        page = await self.get("/ui/login")
        return await self.send(page, "/ui/login", username=username, password=password)

    def _page(self, reply: Reply) -> Page:
        assert reply.headers["content-type"] == "text/html; charset=utf-8", reply
        page = Page(reply.status, reply.headers, reply.body.decode())
        reader = _Reader(page)
        reader.feed(page.html)
        reader.close()
        return page
