"""What rules hold, as uv sees it, which prints why, and as others do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.http_client import HttpClient
from tests.support.upstreams.python import JSON, PythonUpstream

pytestmark = pytest.mark.server

UV = {"Accept": f"{JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01", "User-Agent": "uv/0.13.8"}
WHY = "is blocked by the rule 'no thieves' of main/holding: steals keys"

At = Callable[[str], HttpClient]


def listed(where: HttpClient, project: str, fields: dict[str, str] = UV) -> dict[str, Any]:
    """Whether each file of a page is yanked, by version."""
    page = where.get(f"/simple/{project}/", **fields)
    assert page.status == 200, page
    found = {each["filename"].split("-")[1]: each["yanked"] for each in page.json["files"]}
    assert page.json["versions"] == [*found]
    return found


def test_uv_learns_why_a_version_is_held(at: At, upstream: PythonUpstream) -> None:
    for version in ("1.0", "2.0", "3.0"):
        upstream.add("told", version)
    where = at("holding")
    assert listed(where, "told") == {"1.0": False, "2.0": f"told 2.0 {WHY}", "3.0": f"told 3.0 {WHY}"}
    for name in ("told-2.0-py3-none-any.whl", "told-2.0-py3-none-any.whl.metadata"):
        refused = where.get(f"/packages/told/2.0/{name}", **UV)
        assert (refused.status, "steals keys" in refused.reason) == (403, True)


def test_what_upstreams_yank_themselves_stays_so(at: At, upstream: PythonUpstream) -> None:
    upstream.add("retracted", "1.0", yanked="broken")
    upstream.add("retracted", "2.0", yanked="broken")
    assert listed(at("holding"), "retracted") == {"1.0": "broken", "2.0": f"retracted 2.0 {WHY}"}


@pytest.mark.parametrize("agent", ["pip/26.3", "poetry/2.5.1 CPython/3.11.7 Linux/6.1", "devpi-server/6", "pkgrepo/1"])
def test_who_may_need_another_version_does_not_see_what_is_held(at: At, upstream: PythonUpstream, agent: str) -> None:
    """pip and Poetry would take it where another package needs exactly this version, and stop at the refusal."""
    upstream.add("quiet", "1.0")
    upstream.add("quiet", "2.0")
    assert listed(at("holding"), "quiet", {**UV, "User-Agent": agent}) == {"1.0": False}


def test_pages_in_html_do_not_have_it(at: At, upstream: PythonUpstream) -> None:
    upstream.add("plain", "1.0")
    upstream.add("plain", "2.0")
    page = at("holding").get("/simple/plain/", **{"User-Agent": "uv/0.13.8", "Accept": "text/html"})
    assert ("plain-1.0" in page.text, "plain-2.0" in page.text) == (True, False)


def test_a_project_of_which_all_is_held_has_the_files_for_uv_alone(at: At, upstream: PythonUpstream) -> None:
    upstream.add("gone", "2.0")
    assert listed(at("holding"), "gone") == {"2.0": f"gone 2.0 {WHY}"}
    status = at("holding").get("/simple/gone/", **UV).json["project-status"]
    assert (status["status"], "steals keys" in status["reason"]) == ("active", True)
    status = at("holding").get("/simple/gone/", Accept=JSON).json["project-status"]
    assert (status["status"], "steals keys" in status["reason"]) == ("quarantined", True)


def test_a_version_of_which_one_file_is_served_lists_that_alone(at: At, upstream: PythonUpstream) -> None:
    wheel, data = upstream.add("parted", "1.0")
    sdist, _ = upstream.add("parted", "1.0", sdist=True)
    del data
    digest = next(each["hashes"]["sha256"] for each in upstream.projects["parted"] if each["filename"] == wheel)
    where = at("holding")
    rules = [{"name": "one", "match": {"digests": [f"sha256:{digest}"]}}]
    api = where.elsewhere(where.url.partition("/repositories/")[0])
    before = api.get("/api/repository/main%2Fholding/config/policy").json
    assert api.post_json("/api/repository/main%2Fholding/config/policy", {"rules": rules}, "PATCH").status == 200
    try:
        page = where.get("/simple/parted/", **UV)
        assert [(each["filename"], each["yanked"]) for each in page.json["files"]] == [(sdist, False)]
    finally:
        assert api.post_json("/api/repository/main%2Fholding/config/policy", before, "PUT").status == 200


def test_what_another_member_serves_is_not_held(at: At, upstream: PythonUpstream, old_upstream: PythonUpstream) -> None:
    for version in ("1.0", "2.0.0", "3.0"):
        upstream.add("joint", version)
    old_upstream.add("joint", "2.0")  # the same version in another spelling
    found = listed(at("merged"), "joint")
    assert list(found) == ["1.0", "2.0", "3.0"]
    assert (found["1.0"], found["2.0"]) == (False, False)
    assert found["3.0"] == "joint 3.0 is blocked by the rule 'no thieves' of a member of main/merged: steals keys"
    found = listed(at("first"), "joint")  # the other member is not asked
    assert (found["1.0"], *(bool(found[each]) for each in ("2.0.0", "3.0"))) == (False, True, True)


def test_views_of_the_past_show_what_there_was(at: At, upstream: PythonUpstream) -> None:
    upstream.add("viewed", "1.0")
    upstream.add("viewed", "2.0")
    view = at(f"holding@{datetime.now(UTC):%Y-%m-%d}")
    assert listed(view, "viewed") == {"1.0": False}


def test_caches_between_do_not_give_the_page_of_one_client_to_another(at: At, upstream: PythonUpstream) -> None:
    upstream.add("shared", "1.0")
    upstream.add("shared", "2.0")
    where, pip = at("holding"), {**UV, "User-Agent": "pip/26.3"}
    pages = [where.get("/simple/shared/", **each) for each in (UV, pip)]
    assert pages[0].headers["etag"] != pages[1].headers["etag"]
    for mine, other, fields in ((*pages, UV), (*reversed(pages), pip)):
        assert "no-cache" in mine.headers["cache-control"]
        asked = where.get("/simple/shared/", **fields, **{"If-None-Match": other.headers["etag"]})
        assert (asked.status, asked.body) == (200, mine.body)
        assert where.get("/simple/shared/", **fields, **{"If-None-Match": mine.headers["etag"]}).status == 304
