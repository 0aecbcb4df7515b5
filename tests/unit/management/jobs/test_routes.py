"""Jobs: the list, who may see them, progress, and cancelling."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pkgrepo.repositories.upkeep.jobs import Progress
from tests.support.memory_server import Stack

GC = "/repository/main%2Fpy/gc"


async def endless(progress: Progress) -> Any:
    progress.begin("packages", 3)
    progress.step()
    await Deferred()


async def begin(stack: Stack, **data: Any) -> str:
    return await stack.assembly.core.jobs.begin("gc", "key", {"on": "storage 'main'", **data}, endless)


async def test_jobs_are_listed_for_those_who_could_start_them(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.add_repository("other")
    for name in ("py", "other"):
        await stack.ok("POST", f"/repository/main%2F{name}/gc", {"dry_run": True})
    found = await stack.ok("GET", "/job?limit=1")
    [job] = found["items"]
    assert (job["repository"], job["kind"], job["state"], job["started_by"]) == ("main/other", "gc", "done", "admin")
    assert job["parameters"]["dry_run"] is True
    assert job["parts"][0]["label"] == "packages of main/other"
    second = await stack.ok("GET", f"/job?limit=1&cursor={found['next']}")
    assert ([each["repository"] for each in second["items"]], second["next"]) == (["main/py"], None)
    assert (await stack.ok("GET", "/job?state=failed"))["items"] == []
    await stack.add_user("ada")
    assert (await stack.ok("GET", "/job", who="ada"))["items"] == []
    await stack.grant("ada", "main/py", "read", "admin")
    assert [each["repository"] for each in (await stack.ok("GET", "/job", who="ada"))["items"]] == ["main/py"]
    assert (await stack.api("GET", "/job", who=None)).status == 401


async def test_a_running_job_is_cancelled_by_those_who_could_start_it(stack: Stack) -> None:
    repository = await stack.add_repository("py")
    uid = await begin(stack, repository=repository["id"])
    await stack.add_user("ada")
    assert (await stack.api("POST", f"/job/{uid}/cancel", who="ada")).status == 404
    assert (await stack.ok("POST", f"/job/{uid}/cancel"))["state"] == "cancelled"
    job = await stack.ok("GET", f"/job/{uid}")
    assert (job["errors"], job["parts"][0]["done"], job["cancel_asked"]) == (["the job was cancelled"], 1, True)
    assert (await stack.api("POST", f"/job/{uid}/cancel")).status == 409
    assert (await stack.audited(action="job.cancel", outcome="ok"))[0]["object"] == "storage 'main'"


async def test_jobs_of_the_server_are_shown_to_system_managers(stack: Stack) -> None:
    uid = await begin(stack)
    await stack.add_user("ada")
    await stack.add_user("sam", system_manager=True)
    assert [(await stack.api("GET", f"/job/{uid}", who=who)).status for who in ("ada", "sam")] == [404, 200]
    assert (await stack.ok("POST", f"/job/{uid}/cancel", who="sam"))["state"] == "cancelled"
