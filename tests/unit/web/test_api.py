"""The pages of the API: every operation has one, with examples that fit its schemas."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import msgspec

from pkgrepo.management.app import EVERY_TABLE
from pkgrepo.web.api import example
from tests.support.browser import Browser

LARGEST = 50 * 1024  # bytes of a page


class Node(msgspec.Struct):
    """A value with others of its kind in it."""

    name: str
    count: int = 3
    parts: list[Node] = []
    at: str | None = None


async def test_every_operation_has_a_page(browser: Browser) -> None:
    await browser.log_in()
    index = await browser.get("/ui/api")
    assert len(index.html) < LARGEST
    links = [each for each in index.links if re.fullmatch("/ui/api/[^/]+/[^/]+", each)]
    assert len(links) == sum(len(table.routes) for table in EVERY_TABLE)
    for each in links:
        page = await browser.get(each)
        assert (page.status, len(page.html) < LARGEST) == (200, True), each
    for each in {link.rpartition("/")[0] for link in links}:
        assert (await browser.get(each)).status == 200
    assert (await browser.get("/ui/api/none")).status == 404
    assert (await browser.get("/ui/api/jobs/none")).status == 404


async def test_a_request_example_is_taken(browser: Browser) -> None:
    stack = browser.stack
    await browser.log_in()
    for path, operation in (("/users", "users/post_users"), ("/project", "projects/post_project")):
        page = await browser.get(f"/ui/api/{operation}")
        [body] = re.findall(r'name="body"[^>]*>([^<]*)<', page.html)
        assert (await stack.api("POST", path, json.loads(unescape(body)))).status == 201
    assert "-X POST" in page.text
    assert 'data-csrf="' in page.html


async def test_pages_are_for_everybody(browser: Browser) -> None:
    page = await browser.get("/ui/api/jobs/get_job")
    assert page.status == 200
    assert 'data-csrf=""' in page.html


def test_examples_fit_their_schemas() -> None:
    [schema], schemas = msgspec.json.schema_components([Node], ref_template="#/components/schemas/{name}")
    found: Any = example(schema, schemas)
    assert msgspec.convert(found, Node).name == "demo"
    assert found["parts"][0]["parts"]
    assert example(schema, schemas, sent=True).keys() == {"name", "count", "parts"}
