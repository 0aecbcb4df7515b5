"""What differs between two versions of a package."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from pkgrepo.archives.listing import LIMITS, LONGEST_TEXT
from pkgrepo.management.packages.archives import MOST_CHANGES
from pkgrepo.management.packages.difference import compare_requirements, compare_scripts
from tests.support.memory_server import Stack

PLACE = "/package/main%2Fpy/demo/difference"


async def _publish(stack: Stack) -> None:
    await stack.add_repository()
    old = {"demo/same.py": b"a", "demo/other.py": b"b", "demo/gone.py": b"c"}
    new = {"demo/same.py": b"a", "demo/other.py": b"B", "demo/<b>new</b>.py": b"dd"}
    await stack.publish("main/py", "demo", "1.0", extra_files=old, fields=[("Requires-Dist", "six>=1")])
    await stack.publish("main/py", "demo", "1.1", extra_files=new, fields=[("Requires-Dist", "six>=2")])


async def test_files_and_dependencies_of_versions_are_compared(stack: Stack) -> None:
    await _publish(stack)
    found = await stack.ok("GET", f"{PLACE}?before=1.0&after=1.1", who=None)
    changes = {each["name"]: (each["change"], each["size_before"], each["size_after"]) for each in found["files"]}
    assert changes.pop("demo/other.py") == ("changed", 1, 1)
    assert changes.pop("demo/gone.py") == ("removed", 1, None)
    assert changes.pop("demo/<b>new</b>.py") == ("added", None, 2)
    assert changes.keys() == {"demo-*.dist-info/METADATA", "demo-*.dist-info/RECORD", "demo/__init__.py"}
    assert found["file_count"] == 6
    assert found["complete"] is True
    assert found["requirements"] == [{"name": "six", "before": "six>=1", "after": "six>=2"}]
    assert [each.rpartition("/")[2] for each in found["archives"]] == [
        "demo-1.0-py3-none-any.whl",
        "demo-1.1-py3-none-any.whl",
    ]
    same = await stack.ok("GET", f"{PLACE}?before=1.0&after=1.0")
    assert (same["files"], same["requirements"], same["scripts"]) == ([], [], [])


@pytest.mark.parametrize("query", ["", "?before=1.0", "?before=1.0&after=9", "?before=%00&after=1.0"])
async def test_versions_that_do_not_exist_are_not_found(stack: Stack, query: str) -> None:
    await _publish(stack)
    assert (await stack.api("GET", f"{PLACE}{query}")).status == 404


async def test_a_private_repository_is_compared_for_its_readers_alone(stack: Stack) -> None:
    await _publish(stack)
    await stack.ok("PATCH", "/repository/main%2Fpy", {"visibility": "private"})
    assert (await stack.api("GET", f"{PLACE}?before=1.0&after=1.1", who=None)).status == 401


async def test_more_changes_than_are_returned_are_counted(stack: Stack) -> None:
    await _publish(stack)
    await stack.publish("main/py", "demo", "1.2", extra_files={f"demo/{n}.py": b"" for n in range(MOST_CHANGES)})
    found = await stack.ok("GET", f"{PLACE}?before=1.0&after=1.2")
    assert (len(found["files"]), found["file_count"]) == (MOST_CHANGES, MOST_CHANGES + 6)


async def test_a_text_is_compared_line_by_line(stack: Stack) -> None:
    await _publish(stack)

    async def difference(entry: str, versions: str = "before=1.0&after=1.1") -> tuple[int, str]:
        reply = await stack.api("GET", f"{PLACE}/text?{versions}&entry={quote(entry)}", who=None)
        return reply.status, reply.body.decode()

    assert await difference("demo/other.py") == (
        200,
        "--- 1.0/demo/other.py\n+++ 1.1/demo/other.py\n@@ -1 +1 @@\n-b\n+B\n",
    )
    status, text = await difference("demo/gone.py")
    assert (status, text.splitlines()[3:]) == (200, ["-c"])
    status, text = await difference("demo-*.dist-info/METADATA")
    assert (status, "-Version: 1.0" in text, "+Version: 1.1" in text) == (200, True, True)
    assert await difference("demo/same.py") == (200, "")
    assert (await difference("demo/absent.py"))[0] == 404
    assert (await difference("demo/other.py", "before=1.0&after=9"))[0] == 404
    await stack.publish("main/py", "demo", "1.2", extra_files={"demo/other.py": b"x" * (LONGEST_TEXT + 1)})
    assert (await difference("demo/other.py", "before=1.0&after=1.2"))[0] == 422


async def test_what_was_not_read_is_not_said_to_be_absent_or_the_same(stack: Stack) -> None:
    await _publish(stack)
    large = bytes(LIMITS.digested)
    await stack.publish("main/py", "demo", "1.2", extra_files={"demo/large": large + b"1"})
    await stack.publish("main/py", "demo", "1.3", extra_files={"demo/large": large + b"2"})
    found = await stack.ok("GET", f"{PLACE}?before=1.2&after=1.3")
    assert found["complete"] is False  # demo/large has the size that it had
    many = {f"demo/{number}.py": b"" for number in range(LIMITS.listed)}
    await stack.publish("main/py", "demo", "1.4", extra_files={**many, "demo/new.py": b"1"})
    await stack.publish("main/py", "demo", "1.5", extra_files={**many, "demo/new.py": b"2"})
    found = await stack.ok("GET", f"{PLACE}?before=1.4&after=1.5")
    assert (found["complete"], [each["change"] for each in found["files"] if each["change"] != "changed"]) == (
        False,
        [],
    )
    assert (await stack.api("GET", f"{PLACE}/text?before=1.4&after=1.5&entry=demo/unread.py")).status == 422


def test_only_scripts_that_run_at_an_installation_are_compared() -> None:
    before: dict[str, Any] = {"scripts": {"test": "a", "postinstall": "node x"}}
    after: dict[str, Any] = {"scripts": {"test": "b", "preinstall": "curl evil"}}
    found = [(each.name, each.before, each.after) for each in compare_scripts(before, after)]
    assert found == [("postinstall", "node x", None), ("preinstall", None, "curl evil")]
    assert compare_scripts({"scripts": ["odd"]}, {"scripts": {"install": 1}}) == []


def test_a_dependency_that_is_written_twice_is_compared_whole() -> None:
    before = {"requires_dist": ["six>=1; python_version < '3'", "six>=2; python_version >= '3'"]}
    (found,) = compare_requirements(before, {"requires_dist": before["requires_dist"][:1]})
    assert (found.name, found.after) == ("six", "six>=1; python_version < '3'")
    assert found.before == "; ".join(before["requires_dist"])
