"""Quotas, the retention of the server, webhooks and pins as a file describes them: what differs, and the changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import click
from msgspec import UNSET

from pkgrepo.client.api import Client, at
from pkgrepo.client.apply.definitions import Given, PinGiven, QuotaGiven, WebhookGiven, differences
from pkgrepo.client.apply.rights import Change
from pkgrepo.client.forms import KINDS, place_of, read_count, read_size
from pkgrepo.errors import Invalid
from pkgrepo.outbound.urls import parse_url

DEFAULTS: Final = {  # of rules of retention; other fields are blank
    "enabled": True,
    "schedule": "15 3 * * *",
    "max_delete_percent": 20,
    "action": "trash",
    "in_use": True,
    "pinned": True,
}
LIMITS: Final = {"bytes": read_size, "packages": read_count, "versions": read_count, "file_size": read_size}
WEBHOOK_FIELDS: Final = ("url", "events", "format", "active")


async def plan_upkeep(client: Client, given: Given) -> list[Change]:
    """
    Compare them with the server, in the order in which they can be changed.

    :raises Invalid: a place or a version that the file names is neither on the server nor in the file, or rules or a
        webhook cannot be so; :raises Failed: the server knows no such events
    """
    changes = [await _quota(client, given, each) for each in given.quotas or ()]
    if given.retention is not UNSET:
        changes.append(await _retention(client, given.retention))
    changes += [await _webhook(client, given, each) for each in given.webhooks or ()]
    return changes + [await _pin(client, each) for each in given.pins or ()]


async def surplus_upkeep(client: Client, given: Given) -> list[Change]:
    """
    The quotas, webhooks and pins that the file does not name, of each kind that the file has.

    Webhooks are those of the server, and of the repositories and projects that the file names webhooks of; pins are
    those of the repositories that it names pins of.
    """
    found: list[Change] = []
    if given.quotas is not UNSET:
        found += await _surplus_quotas(client, given, given.quotas)
    if given.webhooks is not UNSET:
        found += await _surplus_webhooks(client, given.webhooks)
    if given.pins is not UNSET:
        found += await _surplus_pins(client, given.pins)
    return found


async def _surplus_quotas(client: Client, given: Given, quotas: Sequence[QuotaGiven]) -> list[Change]:
    named = {each.place.casefold() for each in quotas}
    named |= {each.path.casefold() for each in given.repositories if each.quota is not UNSET}
    named |= {f"project:{each.key}".casefold() for each in given.projects or () if each.quota is not UNSET}
    records = await client.get("system", "quotas")
    limited = [place_of(each) for each in records if any(limit is not None for limit in each["limits"].values())]
    none = dict.fromkeys(LIMITS)
    return [
        Change("quota", each, False, [], partial(client.change, "PATCH", *_path_of(each), body=none), deletes=True)
        for each in limited
        if each.casefold() not in named
    ]


async def _surplus_webhooks(client: Client, webhooks: Sequence[WebhookGiven]) -> list[Change]:
    named = {(_place_of_webhook(each), each.name.casefold()) for each in webhooks}
    found = []
    for place in sorted({(), *(place for place, _ in named)}):
        for each in await _webhooks(client, place, missing=True):
            if (place, each["name"].casefold()) not in named:
                remove = partial(client.change, "DELETE", *_path(place), each["id"])
                found.append(Change("webhook", _title(place, each["name"]), False, [], remove, deletes=True))
    return found


async def _surplus_pins(client: Client, pins: Sequence[PinGiven]) -> list[Change]:
    named = {(each.repository, each.package, each.version) for each in pins}
    found = []
    for repository in dict.fromkeys(each.repository for each in pins):
        for each in await client.get("repository", repository, "pins"):
            package, version = each["package"], each["version"]
            if (repository, package, version) not in named:
                remove = partial(client.change, "DELETE", "package", repository, package, "versions", version, "pin")
                found.append(Change("pin", f"{repository} {package} {version}", False, [], remove, deletes=True))
    return found


def _path_of(place: str) -> tuple[str, ...]:
    """Where the quota of a place is in the API."""
    if place == "server":
        return ("system", "quota")
    kind, colon, name = place.partition(":")
    if colon and kind in KINDS:
        return (KINDS[kind], name, "quota")
    return ("repository" if "/" in place else "storage", place, "quota")


async def _quota(client: Client, given: Given, wanted: QuotaGiven) -> Change:
    limits = {
        name: read(name.replace("_", "-"), value) if isinstance(value := getattr(wanted, name), str) else value
        for name, read in LIMITS.items()
    }
    record = await client.find(*_path_of(wanted.place))
    if record is None and wanted.place.casefold() not in _new_places(given):
        raise Invalid(f"there is no {wanted.place!r}, whose quota the file has")
    have = dict.fromkeys(LIMITS) if record is None else record["limits"]
    found = differences(have, limits)

    async def carry_out() -> None:
        if found:
            await client.change("PATCH", *_path_of(wanted.place), body=limits)

    return Change("quota", wanted.place, False, found, carry_out)


def _new_places(given: Given) -> set[str]:
    """The places that the file makes, if they are not there yet."""
    found = {each.path.casefold() for each in given.repositories}
    return found | {f"project:{each.key}".casefold() for each in given.projects or ()}


async def _retention(client: Client, wanted: dict[str, Any] | None) -> Change:
    place = at("system", "retention")
    read = await client.call("GET", place)
    have = read.value["retention"]
    found = differences(_without_defaults(have), _without_defaults(wanted))
    if found and wanted is not None:
        valid = await client.change("POST", "repository", "config", "retention", "validate", body=_uncached(wanted))
        if faults := "; ".join(f"{each['pointer'] or '/'}: {each['message']}" for each in valid["errors"]):
            raise Invalid(f"the retention of the server is not valid: {faults}")

    async def carry_out() -> None:
        if found:
            await client.call("PUT", place, value={"retention": wanted}, headers=read.unchanged)

    return Change("retention", "of the server", have is None and wanted is not None, found, carry_out)


def _uncached(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Rules as those of a hosted repository, which alone can be validated: these have no ``match.cached``."""
    rules = wanted.get("rules")
    if not isinstance(rules, list):
        return {**wanted}
    without = [dict(each) if isinstance(each, dict) else each for each in rules]
    for each in without:
        if isinstance(each, dict) and isinstance(match := each.get("match"), dict):
            each["match"] = {key: value for key, value in match.items() if key != "cached"}
    return {**wanted, "rules": without}


def _without_defaults(value: Any) -> Any:
    """Rules without the fields that have their defaults, which the server fills in."""
    if isinstance(value, list):
        return [_without_defaults(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _without_defaults(each) for key, each in value.items()}
    return {key: each for key, each in found.items() if each not in (None, "", [], {}) and DEFAULTS.get(key) != each}


async def _webhook(client: Client, given: Given, wanted: WebhookGiven) -> Change:
    place = _place_of_webhook(wanted)
    records = await _webhooks(client, place, missing=_is_new(given, wanted))
    record = next((each for each in records if each["name"].casefold() == wanted.name.casefold()), None)
    fields = {name: value for name in WEBHOOK_FIELDS if (value := getattr(wanted, name)) is not UNSET}
    have = {} if record is None else {name: record[name] for name in fields}
    found = differences(have, fields)
    title = _title(place, wanted.name)
    if found:
        try:
            parse_url(wanted.url)
        except ValueError as error:
            raise Invalid(f"the address of webhook {title} cannot be used: {error}") from None
        await client.get("events", type=",".join(wanted.events), limit=1)  # which refuses types that are none

    async def carry_out() -> None:
        if record is None:
            secret = {} if wanted.secret is None else {"secret": wanted.secret}
            made = await client.change("POST", *_path(place), body={"name": wanted.name, **fields, **secret})
            if wanted.secret is None:
                click.echo(f"the secret of webhook {title}, which is shown once: {made['secret']}", err=True)
        elif found:
            await client.change("PATCH", *_path(place), record["id"], body=fields)

    return Change("webhook", title, record is None, found, carry_out)


def _is_new(given: Given, wanted: WebhookGiven) -> bool:
    """Whether the file makes the place of a webhook, if it is not there yet."""
    if wanted.repository:
        return wanted.repository.casefold() in {each.path.casefold() for each in given.repositories}
    return wanted.project.casefold() in {each.key.casefold() for each in given.projects or ()}


def _place_of_webhook(webhook: WebhookGiven) -> tuple[str, ...]:
    if webhook.repository:
        return ("repository", webhook.repository)
    return ("project", webhook.project) if webhook.project else ()


def _path(place: Sequence[str]) -> tuple[str, ...]:
    return (*(place or ("system",)), "webhooks")


def _title(place: Sequence[str], name: str) -> str:
    return f"{name} of {place[0]} {place[1]}" if place else name


async def _webhooks(client: Client, place: Sequence[str], *, missing: bool = False) -> Iterable[dict[str, Any]]:
    """The webhooks of a place; none if it is ``missing`` on the server and may be. :raises Invalid: there is none"""
    if place and await client.find(*place) is None:
        if missing:
            return []
        raise Invalid(f"there is no {place[0]} {place[1]!r}, whose webhooks the file has")
    found: list[dict[str, Any]] = await client.get(*_path(place))
    return found


async def _pin(client: Client, wanted: PinGiven) -> Change:
    version = ("package", wanted.repository, wanted.package, "versions", wanted.version)
    listed = await client.find("package", wanted.repository, wanted.package, "pins") or []
    record = next((each for each in listed if each["version"] == wanted.version), None)
    title = f"{wanted.repository} {wanted.package} {wanted.version}"
    if record is None and await client.find(*version) is None:
        raise Invalid(f"there is no version {title}, which the file pins")
    found = differences({} if record is None else {"reason": record["reason"]}, {"reason": wanted.reason})

    async def carry_out() -> None:
        if found:
            await client.change("PUT", *version, "pin", body={"reason": wanted.reason})

    return Change("pin", title, record is None, found, carry_out)
