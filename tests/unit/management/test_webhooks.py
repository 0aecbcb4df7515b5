"""Webhooks by the API: who may have them, what is sent, and what happens when receivers fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.interfaces import Transaction
from pkgrepo.storage.catalog.server import webhook_deliveries, webhooks
from pkgrepo.webhooks.sender import Outcome, Webhook, WebhookSender
from tests.support.inprocess_server import Provoked, turn, until
from tests.support.memory_server import Stack
from tests.support.receivers import Message, Receiver

SYSTEM = "/system/webhooks"
PRIVATE = {"webhooks__allow_private": ["127.0.0.1"], "webhooks__timeout": "60s"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest_twisted.async_yield_fixture
async def server(make_stack: Any) -> Any:
    """A server that may send to this machine."""
    yield await make_stack(**PRIVATE)


async def add(stack: Stack, receiver: Receiver, path: str = "", place: str = SYSTEM, **fields: Any) -> Any:
    body = {"name": f"hook {path}", "url": receiver.url + path, "events": ["package.*"], **fields}
    return await stack.ok("POST", place, body)


async def add_repository(stack: Stack, name: str = "py") -> None:
    """Add a repository of which no conda packages are made, which would have events of their own."""
    await stack.add_repository(name, config={"type": "Hosted", "conda": {"from_wheels": False}})


async def deliveries(stack: Stack, hook: Any, state: str = "", place: str = SYSTEM) -> list[Any]:
    listed: list[Any] = (await stack.ok("GET", f"{place}/{hook['id']}/deliveries?state={state}"))["items"]
    return listed


async def ended(stack: Stack, hook: Any, count: int) -> list[Any]:
    """The deliveries of a webhook, once so many have been attempted."""
    while True:
        found = [each for each in await deliveries(stack, hook) if each["attempts"]]
        if len(found) >= count:
            return found
        await turn()


async def make_due(stack: Stack) -> None:
    """End the pauses of all deliveries."""
    await stack.assembly.core.catalog.write(lambda tx: tx.execute("UPDATE webhook_delivery SET due_at = 0"))


async def test_events_are_sent_signed_and_in_the_order_of_a_package(server: Stack, receiver: Receiver) -> None:
    await add_repository(server)
    hook = await add(server, receiver)
    secret = hook["secret"]
    assert secret.startswith("whsec_")
    assert "secret" not in await server.ok("GET", f"{SYSTEM}/{hook['id']}")
    for version in ("1.0", "1.1", "1.2"):
        await server.publish("main/py", "demo", version)
    await server.ok("POST", "/package/main%2Fpy/demo/versions/1.1/yank", {"reason": "bad"})
    await server.ok("DELETE", "/package/main%2Fpy/demo/versions/1.0")
    await until(lambda: len(receiver.messages) == 5)
    assert all(each.is_signed(secret) for each in receiver.messages)
    first = receiver.messages[0]
    event = first.json
    assert (event["specversion"], event["type"], event["subject"]) == (
        "1.0",
        "pkgrepo.package.published.v1",
        "main/py/demo@1.0",
    )
    assert event["data"]["files"][0]["sha256"]
    assert event["data"]["actor"] == "admin"
    assert event["id"] == first.id == first.fields["ce-id"]
    assert first.fields["content-type"].startswith("application/cloudevents+json")
    assert [each.json["type"].split(".")[2] for each in receiver.messages[3:]] == ["yanked", "deleted"]
    assert [each.json["seq"] for each in receiver.messages] == sorted(each.json["seq"] for each in receiver.messages)
    assert {each["state"] for each in await ended(server, hook, 5)} == {"delivered"}
    assert (await deliveries(server, hook))[0]["response"] == "thanks"


async def test_a_webhook_gets_the_types_it_names_in_the_form_it_wants(server: Stack, receiver: Receiver) -> None:
    await add_repository(server)
    await add(server, receiver, "/yanks", events=["package.yanked"], format="plain")
    await add(server, receiver, "/all", events=["package.*"])
    await server.publish("main/py", "demo", "1.0")
    await server.ok("POST", "/package/main%2Fpy/demo/versions/1.0/yank", {"reason": "bad"})
    await until(lambda: len(receiver.messages) == 3)
    [yank] = receiver.of("/yanks")
    assert yank.fields["content-type"] == "application/json"
    assert (yank.json["type"], yank.json["data"]["reason"]) == ("package.yanked", "bad")
    assert "ce-id" not in yank.fields


async def test_a_failed_delivery_is_sent_again_with_its_id_and_holds_back_only_its_package(
    server: Stack, receiver: Receiver
) -> None:
    await add_repository(server)
    hook = await add(server, receiver)
    is_broken = True

    def answer(message: Message) -> tuple[int, dict[str, str]]:
        return (500, {}) if is_broken and message.json["data"]["package"] == "demo" else (200, {})

    receiver.answer = answer
    await server.publish("main/py", "demo", "1.0")
    await until(lambda: len(receiver.messages) == 1)
    await server.publish("main/py", "demo", "1.1")
    await server.publish("main/py", "other", "1.0")
    await until(lambda: len(receiver.messages) == 2)
    assert receiver.messages[1].json["subject"] == "main/py/other@1.0"
    await ended(server, hook, 2)
    [failed] = [each for each in await deliveries(server, hook, "pending") if each["attempts"]]
    assert (failed["status"], failed["error"], failed["next_attempt_at"] > failed["attempted_at"]) == (
        500,
        "it answers 500",
        True,
    )
    assert (await server.ok("GET", f"{SYSTEM}/{hook['id']}"))["pending"] == 2
    is_broken = False
    await make_due(server)
    await until(lambda: len(receiver.messages) == 4)
    assert [each.json["subject"] for each in receiver.messages[2:]] == ["main/py/demo@1.0", "main/py/demo@1.1"]
    assert receiver.messages[0].id == receiver.messages[2].id
    while (await server.ok("GET", f"{SYSTEM}/{hook['id']}"))["failing_since"]:
        await turn()


async def test_a_delivery_whose_outcome_could_not_be_noted_is_sent_again(
    server: Stack, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_repository(server)
    hook = await add(server, receiver)
    record = webhook_deliveries.record_attempts
    faults = ["once"]

    def record_later(tx: Transaction, some: Any) -> None:
        if faults:
            raise Provoked(faults.pop())
        record(tx, some)

    monkeypatch.setattr(webhook_deliveries, "record_attempts", record_later)
    await server.publish("main/py", "demo", "1.0")
    await until(lambda: len(receiver.messages) == 2)
    assert receiver.messages[0].id == receiver.messages[1].id
    assert [each["state"] for each in await ended(server, hook, 1)] == ["delivered"]


async def test_a_receiver_that_refuses_gets_a_message_three_times_and_one_that_is_gone_is_switched_off(
    server: Stack, receiver: Receiver
) -> None:
    await add_repository(server)
    refusing, gone = await add(server, receiver, "/refuses"), await add(server, receiver, "/gone")
    receiver.answer = lambda message: (410 if message.path == "/gone" else 403, {})
    await server.publish("main/py", "demo", "1.0")
    for count in (1, 2, 3):
        await until(lambda count=count: len(receiver.of("/refuses")) == count)
        [only] = await ended(server, refusing, 1)
        while only["attempts"] < count:
            await turn()
            [only] = await deliveries(server, refusing)
        await make_due(server)
    assert (only["state"], only["status"]) == ("failed", 403)
    await ended(server, gone, 1)
    while not (shown := await server.ok("GET", f"{SYSTEM}/{gone['id']}"))["disabled_reason"]:
        await turn()
    assert (shown["active"], "410" in shown["disabled_reason"], len(receiver.of("/gone"))) == (False, True, 1)
    assert [each["action"] for each in await server.audited(action="webhook.disable")] == ["webhook.disable"]
    catalog = server.assembly.core.catalog
    found = await catalog.look(webhooks.find_webhook, gone["id"])
    assert not await catalog.write(webhooks.disable_webhook, found.id, "another delivery has ended, too", 1)
    checks = (await server.call("GET", "/readyz")).json["checks"]
    assert checks["webhooks"] == (
        "switched off because their receivers failed: hook /gone; their receivers fail: hook /refuses"
    )
    again = await server.ok("POST", f"{SYSTEM}/{refusing['id']}/deliveries/{only['id']}/redeliver")
    assert again["state"] == "pending"
    await until(lambda: len(receiver.of("/refuses")) == 4)
    assert {each.id for each in receiver.of("/refuses")} == {only["message_id"]}
    # Switched on again, it begins with the events from then on.
    receiver.answer = lambda _: (200, {})
    await server.ok("PATCH", f"{SYSTEM}/{gone['id']}", {"active": True})
    await server.publish("main/py", "demo", "2.0")
    await until(lambda: len(receiver.of("/gone")) == 2)
    assert (await server.call("GET", "/readyz")).json["checks"]["webhooks"] == "their receivers fail: hook /refuses"
    metrics = (await server.call("GET", "/metrics")).body
    assert b'pkgrepo_webhook_deliveries_total{result="given_up"} 2.0' in metrics
    assert receiver.of("/gone")[1].json["subject"] == "main/py/demo@2.0"


async def test_redirects_are_not_followed_and_silence_is_a_failure(make_stack: Any, receiver: Receiver) -> None:
    server = await make_stack(**{**PRIVATE, "webhooks__timeout": "0.5s"})
    hook = await add(server, receiver, "/moved")
    receiver.answer = lambda _: (302, {"Location": f"{receiver.url}/elsewhere"})
    sent = await server.ok("POST", f"{SYSTEM}/{hook['id']}/test")
    assert (sent["state"], sent["status"], "not followed" in sent["error"]) == ("failed", 302, True)
    receiver.answer = lambda _: (200, {})
    receiver.released.clear()
    sent = await server.ok("POST", f"{SYSTEM}/{hook['id']}/test")
    assert (sent["status"], "webhooks.timeout" in sent["error"]) == (None, True)
    receiver.released.set()
    assert {each.path for each in receiver.messages} == {"/moved"}


async def test_a_rotated_secret_signs_beside_the_old_one(server: Stack, receiver: Receiver) -> None:
    hook = await add(server, receiver)
    rotated = await server.ok("POST", f"{SYSTEM}/{hook['id']}/rotate-secret")
    assert rotated["secret"] != hook["secret"]
    await server.ok("POST", f"{SYSTEM}/{hook['id']}/test")
    assert receiver.messages[0].is_signed(hook["secret"])
    assert receiver.messages[0].is_signed(rotated["secret"])
    last = await server.ok("POST", f"{SYSTEM}/{hook['id']}/rotate-secret", {"overlap_hours": 0})
    await server.ok("POST", f"{SYSTEM}/{hook['id']}/test")
    assert receiver.messages[1].is_signed(last["secret"])
    assert not receiver.messages[1].is_signed(rotated["secret"])


async def test_the_secrets_are_in_no_answer_log_or_row(server: Stack, receiver: Receiver) -> None:
    hook = await add(server, receiver, secret="whsec_" + "QUJD" * 10)
    await server.ok("POST", f"{SYSTEM}/{hook['id']}/test")
    assert hook["secret"] == "whsec_" + "QUJD" * 10
    shown = str([await server.ok("GET", SYSTEM), await server.audited(), await deliveries(server, hook)])
    assert "QUJD" not in shown
    rows = await server.assembly.core.catalog.look(lambda r: r.all("SELECT * FROM webhook"))
    assert "QUJD" not in str(rows)


async def test_addresses_are_checked(stack: Stack, receiver: Receiver) -> None:
    for url in ("http://10.0.0.1/", "http://localhost/", "ftp://example.org/", "http://user:secret@example.org/", "x"):
        reply = await stack.api("POST", SYSTEM, {"name": "x", "url": url, "events": ["*"]})
        assert (reply.status, reply.pointer) == (422, "/url"), url
    # A name is resolved when something is sent, and the address that it has then is checked.
    hook = await stack.ok("POST", SYSTEM, {"name": "x", "url": "http://ip6-localhost.invalid/", "events": ["*"]})
    sent = await stack.ok("POST", f"{SYSTEM}/{hook['id']}/test")
    assert (sent["state"], sent["status"]) == ("failed", None)
    assert receiver.messages == []


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"events": []}, "/events"),
        ({"events": ["package.nothing"]}, "/events"),
        ({"events": ["[a-z]*"]}, "/events"),
        ({"format": "xml"}, "/format"),
        ({"secret": "secret"}, "/secret"),
        ({"secret": "whsec_c2hvcnQ="}, "/secret"),
        ({"name": ""}, "/name"),
        ({"colour": "red"}, "/colour"),
    ],
)
async def test_wrong_fields_are_refused(stack: Stack, fields: dict[str, Any], pointer: str) -> None:
    body = {"name": "x", "url": "https://hooks.example/", "events": ["*"], **fields}
    reply = await stack.api("POST", SYSTEM, body)
    assert (reply.status, reply.pointer) == (422, pointer)
    assert await stack.ok("GET", SYSTEM) == []


async def test_each_place_has_its_webhooks_and_managers(server: Stack, receiver: Receiver) -> None:
    await add_repository(server)
    await add_repository(server, "more")
    await server.add_user("ada")
    await server.add_user("bob")
    await server.grant("ada", "main/py", "read", "edit")
    await server.grant("bob", "main/py", "read", "write")
    await server.ok("POST", "/project", {"key": "core", "visibility": "public"})
    await server.ok("POST", "/project/core/bindings", {"repository": "main/py", "pattern": "core-*"})
    await server.ok("POST", "/project/core/members", {"user": "bob", "role": "maintainer"})
    of_repository, of_project = "/repository/main%2Fpy/webhooks", "/project/core/webhooks"
    body = {"url": receiver.url, "events": ["package.*"]}
    for place, may, may_not in ((SYSTEM, "admin", "ada"), (of_repository, "ada", "bob"), (of_project, "bob", "ada")):
        url = f"{receiver.url}/{may}"
        assert (await server.api("POST", place, {**body, "name": "h", "url": url}, who=may_not)).status == 403
        assert (await server.api("GET", place, who=may_not)).status == 403
        assert (await server.api("GET", place, who=None)).status == 401
        made = await server.ok("POST", place, {**body, "name": "h", "url": url}, who=may)
        assert (await server.api("POST", place, {**body, "name": "h", "url": url}, who=may)).status == 409
        for other in (SYSTEM, of_repository, of_project):
            status = (await server.api("GET", f"{other}/{made['id']}")).status
            assert status == (200 if other == place else 404)
    await server.publish("main/more", "core-x", "1.0")
    await server.publish("main/py", "other", "1.0")
    await server.publish("main/py", "core-x", "1.0")
    await until(lambda: len(receiver.messages) == 6)
    subjects = {who: [each.json["subject"] for each in receiver.of(f"/{who}")] for who in ("ada", "bob")}
    assert sorted(subjects["ada"]) == ["main/py/core-x@1.0", "main/py/other@1.0"]
    assert subjects["bob"] == ["main/py/core-x@1.0"]
    [hook] = await server.ok("GET", of_repository, who="ada")
    assert (await server.api("DELETE", f"{of_repository}/{hook['id']}", who="bob")).status == 403
    assert (await server.api("DELETE", f"{of_repository}/{hook['id']}", who="ada")).status == 204
    assert await server.ok("GET", of_repository) == []


async def test_what_the_server_does_is_an_event_too(server: Stack, receiver: Receiver) -> None:
    await add(server, receiver, events=["repository.*", "gc.finished", "token.created", "member.changed"])
    await server.add_repository("py")  # with a companion, the conda channel, of which nobody knows
    await server.token()
    await server.ok("POST", "/repository/main%2Fpy/gc?wait=25", {})
    await server.ok("DELETE", "/repository/main%2Fpy?confirm=py")
    await until(lambda: len(receiver.messages) == 4)
    found = {each.json["type"].removeprefix("pkgrepo.").removesuffix(".v1"): each.json for each in receiver.messages}
    assert sorted(found) == ["gc.finished", "repository.created", "repository.deleted", "token.created"]
    assert found["gc.finished"]["data"]["state"] == "done"
    gone = found["repository.deleted"]
    assert (gone["subject"], gone["data"]["repository"], gone["data"]["format"]) == ("main/py", "main/py", "python")
    assert found["repository.created"]["subject"] == "main/py"


async def test_a_receiver_that_fails_for_five_days_is_switched_off_and_admins_are_told(
    server: Stack, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, checked = WebhookSender._check_patience, list[Webhook]()

    async def counted(sender: WebhookSender, hook: Webhook, outcome: Outcome) -> None:
        await check(sender, hook, outcome)
        checked.append(hook)

    monkeypatch.setattr(WebhookSender, "_check_patience", counted)
    await add_repository(server)
    await server.ok("POST", "/project", {"key": "core", "visibility": "public"})
    await server.ok("POST", "/project/core/bindings", {"repository": "main/py", "pattern": "core-*"})
    place = "/project/core/webhooks"
    hook = await add(server, receiver, "/fails", place)
    await add(server, receiver, "/told", events=["webhook.disabled"])
    receiver.answer = lambda message: (500 if message.path == "/fails" else 200, {})
    await server.publish("main/py", "core-x", "1.0")

    async def tried(count: int) -> Any:
        while True:
            # Until an attempt was judged, no other time may be.
            found = await deliveries(server, hook, place=place)
            if [each["attempts"] for each in found] == [count] == [len(checked)]:
                return await server.ok("GET", f"{place}/{hook['id']}")
            await turn()

    first = await tried(1)
    assert (first["active"], first["failing_since"] is not None) == (True, True)
    for count, days in ((2, 4.9), (3, 0.2)):
        clock = server.assembly.core.clock
        now = clock.now_ms
        clock.now_ms = lambda now=now, days=days: now() + round(days * 86_400_000)
        shown = await tried(count)
        if count == 2:
            assert shown["active"]
    await until(lambda: bool(receiver.of("/told")))
    [told] = receiver.of("/told")
    assert (told.json["type"], told.json["data"]["name"]) == ("pkgrepo.webhook.disabled.v1", "hook /fails")
    shown = await server.ok("GET", f"{place}/{hook['id']}")
    reason = "every attempt has failed for 5 days; the last time it answers 500"
    assert (shown["active"], shown["disabled_reason"]) == (False, reason)
    [row] = await server.audited(action="webhook.disable")
    assert row["detail"]["reason"] == reason
    checks = (await server.call("GET", "/readyz")).json["checks"]
    assert checks["webhooks"] == "switched off because their receivers failed: hook /fails"
    [given_up] = await deliveries(server, hook, place=place)
    assert given_up["state"] == "failed"
