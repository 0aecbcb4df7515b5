"""Tags are set and removed by the API, with the rules of clients."""

from __future__ import annotations

from tests.support.http_client import BOUNDARY, form_body
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_tarball

TAG = "/api/package/main%2Frepo/demo/tags/old"


async def test_a_tag_stands_for_a_version_until_it_is_removed(stack: Stack) -> None:
    await stack.add_repository("repo", format="npm")
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    for version in ("1.0.0", "2.0.0"):
        raw = form_body([("file", "x.tgz", make_tarball("demo", version))])
        assert (await stack.call("POST", "/api/repository/main%2Frepo/upload", headers=headers, raw=raw)).status == 200

    async def tags() -> list[str]:
        return list((await stack.ok("GET", "/package/main%2Frepo/demo/versions/1.0.0"))["tags"])

    assert (await stack.call("PUT", TAG, {"version": "1.0.0"})).status == 204
    assert await tags() == ["old"]
    [row] = await stack.audited(action="tag.set")
    assert row["object"] == "main/repo/demo:old"
    assert (await stack.call("DELETE", TAG)).status == 204
    assert await tags() == []
    latest = await stack.call("DELETE", TAG.replace("old", "latest"))
    assert (latest.status, "cannot be removed" in latest.json["detail"]) == (422, True)
    await stack.add_user("ada")
    await stack.grant("ada", "main/repo", "read")
    for who, status in (("ada", 403), (None, 401)):
        assert (await stack.call("PUT", TAG, {"version": "1.0.0"}, who=who)).status == status
    assert (await stack.call("PUT", TAG, {"version": "9.9.9"})).status in (404, 422)


async def test_other_formats_have_no_tags(stack: Stack) -> None:
    await stack.add_repository("repo")
    refused = await stack.call("PUT", TAG, {"version": "1.0"})
    assert (refused.status, "have no tags" in refused.json["detail"]) == (422, True)
