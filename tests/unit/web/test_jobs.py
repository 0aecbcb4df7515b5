"""Jobs in the console: they are started, watched and cancelled."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from twisted.internet.defer import Deferred

from pkgrepo.repositories.upkeep.jobs import Progress
from tests.support.browser import Browser
from tests.support.memory_server import OTHER_PASSWORD

SETTINGS = "/ui/repositories/main/py/settings"


async def endless(progress: Progress) -> Any:
    progress.begin("<b>packages</b>", 4)
    progress.step(2)
    await Deferred()


async def test_a_collection_is_started_and_its_result_shown(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.log_in()
    page = await browser.get(SETTINGS)
    page = await browser.send(page, f"{SETTINGS}/jobs/gc", dry_run="1")
    [uid] = {link.rsplit("/", 1)[1] for link in (await browser.get("/ui/admin/jobs")).links if "/admin/jobs/" in link}
    await browser.stack.assembly.core.jobs.wait(uid)
    page = await browser.get(f"/ui/admin/jobs/{uid}")
    assert "done on storage 'main'" in page.text
    assert "packages of main/py" in page.text
    assert "Result of the dry run" in page.text
    assert "Would be freed 0 bytes" in page.text
    page = await browser.get("/ui/admin/jobs?kind=gc&state=failed")
    assert "No job fits" in page.text


async def test_stored_files_are_verified_from_the_settings(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    await browser.log_in()
    page = await browser.send(await browser.get(SETTINGS), f"{SETTINGS}/jobs/verify")
    [uid] = {link.rsplit("/", 1)[1] for link in (await browser.get("/ui/admin/jobs")).links if "/admin/jobs/" in link}
    await browser.stack.assembly.core.jobs.wait(uid)
    page = await browser.get(f"/ui/admin/jobs/{uid}")
    assert "Verification done" in page.text
    assert "Files and blobs read 2" in page.text
    assert "Missing 0 Damaged 0" in page.text


async def test_a_running_job_shows_its_progress_and_is_cancelled(browser: Browser) -> None:
    repository = await browser.stack.add_repository("py")
    await browser.log_in()
    jobs = browser.stack.assembly.core.jobs
    storage = browser.stack.assembly.core.registry.storages()[0]
    uid = await jobs.begin("gc", storage.uid, {"on": "x", "repository": repository["id"]}, endless)
    page = await browser.send(await browser.get(SETTINGS), f"{SETTINGS}/jobs/gc", dry_run="1")
    assert ("data-live" in page.html, f"/ui/admin/jobs/{uid}/cancel" in page.forms) == (True, True)
    page = await browser.send(page, f"/ui/admin/jobs/{uid}/cancel")
    assert ("cancelled" in page.text, "data-live" in page.html) == (True, False)
    assert "<b>packages</b> not ended 2 of 4" in page.text
    reply = await browser.raw("POST", f"/ui/admin/jobs/{uid}/cancel", {"csrf": page.forms["/ui/logout"]["csrf"]})
    assert (reply.status, b"has ended already" in reply.body) == (422, True)


@pytest.mark.parametrize("path", ["/ui/admin/jobs/none", f"{SETTINGS}/jobs/other"], ids=["id", "kind"])
async def test_what_is_no_job_is_answered_with_a_page(browser: Browser, path: str) -> None:
    await browser.stack.add_repository("py")
    page = await browser.log_in()
    method = "GET" if "none" in path else "POST"
    form = None if method == "GET" else {"csrf": page.forms["/ui/logout"]["csrf"]}
    assert (await browser.raw(method, path, form)).status == 404


async def test_only_those_who_may_start_jobs_do(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.add_user("ada")
    page = await browser.log_in("ada", OTHER_PASSWORD)
    form = {"csrf": page.forms["/ui/logout"]["csrf"], "dry_run": "1"}
    assert (await browser.raw("POST", f"{SETTINGS}/jobs/gc", form)).status == 403
    assert "No job ran" in (await browser.get("/ui/admin/jobs")).text


async def test_an_import_is_started_from_a_form_and_its_report_shown(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.log_in()
    form = f"{SETTINGS}/import"
    page = await browser.get(form)
    assert ("devpi" in page.text, "verdaccio" in page.text, form in (await browser.get(SETTINGS)).links) == (
        True,
        False,
        True,
    )
    page = await browser.send(page, form, kind="nexus", source="https://old.example/", username="<b>ann")
    assert (page.status, "Name the repository of Nexus" in page.text) == (422, True)
    assert ("&lt;b&gt;ann" in page.html, "https://old.example/" in page.html) == (True, True)
    page = await browser.send(page, form, kind="python", source="/srv/wheels")
    assert "imports.folders lists those" in page.text
    page = await browser.send(page, form, kind="python", source="http://127.0.0.1:9/simple/", secret="s3cret")
    assert "s3cret" not in page.html
    [job] = (await browser.stack.ok("GET", "/job?kind=import"))["items"]
    await browser.stack.assembly.core.jobs.wait(job["id"])
    page = await browser.get(f"/ui/admin/jobs/{job['id']}")
    assert ("Import failed" in page.text, "127.0.0.1" in page.text) == (True, True)
    found = await browser.stack.call("GET", "/api/events?type=import.*")
    assert [msgspec.json.decode(each)["data"]["state"] for each in found.body.splitlines()] == ["failed"]
