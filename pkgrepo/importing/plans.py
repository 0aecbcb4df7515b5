"""
The repositories of another server, as those that would take their place here.

Written from the documentation of their APIs.

A plan is made of what the API of the server says of its settings: hosted repositories are empty ones into which imports
go, remote ones are proxies of the same upstream, groups are virtual repositories of the same members in the same order.
Passwords of upstreams are in no API; what has no counterpart here is named and left to people.

===========  ======================================================================  ===================================
server       what is read                                                            who may read it
===========  ======================================================================  ===================================
Nexus 3      ``service/rest/v1/repositorySettings``                                  users with nx-repository-admin
Artifactory  ``api/repositories``, and ``api/repositories/KEY`` of each              administrators
===========  ======================================================================  ===================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import Factory, define, field, frozen

from pkgrepo.errors import Invalid
from pkgrepo.model.repositories import NAME
from pkgrepo.outbound.urls import UserInfoError, parse_url

Settings = Mapping[str, Any]

LOCAL_NAME: Final = re.compile(NAME)
# By the names that Nexus and Artifactory have for them, in lower case.
FORMATS: Final = {
    "cargo": "cargo",
    "conda": "conda",
    "docker": "docker",
    "go": "go",
    "helm": "helm",
    "oci": "docker",
    "maven": "maven",
    "maven2": "maven",
    "gradle": "maven",
    "npm": "npm",
    "pypi": "python",
    "raw": "raw",
    "generic": "raw",
    "rubygems": "ruby",
    "gems": "ruby",
}
_UPSTREAM: Final = {"cargo": "gitRegistryUrl", "python": "pyPIRegistryUrl"}  # of Artifactory, where its url is another
_GO_PROXY: Final = "ARTIFACTORY"  # what Artifactory calls the kind of an upstream that has modules, not sources
_KINDS: Final = ("Hosted", "Proxy", "Virtual")
_ALIASES: Final = {  # below api/ of Artifactory
    "cargo": "cargo",
    "conda": "conda",
    "go": "go",
    "helm": "helm",
    "npm": "npm",
    "python": "pypi",
    "ruby": "gems",
}
_OVERWRITE: Final[Mapping[str, Callable[[bool], dict[str, Any]]]] = {
    "conda": lambda allowed: {"policy": {"allow_overwrite": allowed}},
    "docker": lambda allowed: {"push_rules": {"allow_tag_overwrite": allowed}},
    "helm": lambda allowed: {"policy": {"allow_overwrite": allowed}},
    "maven": lambda allowed: {"push_rules": {"allow_overwrite": allowed}},
    "python": lambda allowed: {"policy": {"allow_overwrite": allowed}},
    "raw": lambda allowed: {"policy": {"overwrite": ["*"] if allowed else []}},
}


@frozen
class Take:
    """An import of the packages of a hosted repository: the arguments of ``pkgrepo import`` before ``--into``."""

    arguments: Sequence[str]
    into: str


@define
class Plan:
    """
    What to make here: ``repositories`` and ``groups`` as ``pkgrepo repo apply`` takes them, members of virtual
    repositories before these.

    ``commands`` are arguments of ``pkgrepo`` about people. ``aliases`` are repositories by the path that they had, and
    ``hosts`` by host and port, for the settings; ``notes`` are sentences about what is left to people.
    """

    storage: str
    visibility: str
    repositories: list[dict[str, Any]] = field(factory=list)
    groups: list[dict[str, Any]] = field(factory=list)
    takes: list[Take] = field(factory=list)
    commands: list[Sequence[str]] = field(factory=list)
    aliases: dict[str, str] = field(factory=dict)
    hosts: dict[str, str] = field(factory=dict)
    notes: list[str] = field(factory=list)

    def place(self, name: str) -> str:
        """The path of a repository here."""
        return f"{self.storage}/{name}"


@frozen
class _Old:
    """A repository of the other server: ``kind`` is Hosted, Proxy or Virtual."""

    name: str
    format: str
    kind: str
    config: dict[str, Any] = Factory(dict)
    members: Sequence[str] = ()
    publish_to: str = ""
    description: str = ""
    active: bool = True


def plan_nexus(url: str, settings: Iterable[Settings], plan: Plan) -> Plan:
    """
    The plan for the repositories of a Nexus 3 at an address, from its ``repositorySettings``.

    :raises Invalid: they are not what a Nexus answers
    """
    old = [each for raw in objects(settings) if (each := _old(raw, raw.get("format"), _read_nexus, plan)) is not None]
    for each in _in_order(old, plan):
        if each.format != "docker":
            plan.aliases[f"/repository/{each.name}/"] = plan.place(each.name)
        if each.kind == "Hosted" and each.format != "docker":
            arguments = ["conda", f"{url}/repository/{each.name}"]
            if each.format != "conda":
                arguments = ["nexus", url, "--repository", each.name]
            plan.takes.append(Take(arguments, plan.place(each.name)))
    images = {each["name"] for each in plan.repositories if each["format"] == "docker"}
    for raw in objects(settings):
        if raw.get("name") in images:
            _plan_connector(url, raw, plan)
    return plan


def plan_artifactory(url: str, settings: Iterable[Settings], plan: Plan) -> Plan:
    """
    The plan for the repositories of an Artifactory at an address, from the ``api/repositories/KEY`` of each.

    :raises Invalid: they are not what an Artifactory answers
    """
    found = [_old(raw, raw.get("packageType"), _read_artifactory, plan, key="key") for raw in objects(settings)]
    path = urlsplit(url).path
    for each in _in_order([each for each in found if each is not None], plan):
        part = f"api/{_ALIASES[each.format]}/{each.name}" if each.format in _ALIASES else each.name
        plan.aliases[f"/v2/{each.name}/" if each.format == "docker" else f"{path}/{part}/"] = plan.place(each.name)
        if each.kind == "Hosted":
            plan.takes.append(Take(["artifactory", url, "--repository", each.name], plan.place(each.name)))
    return plan


def objects(settings: Iterable[Settings]) -> list[Settings]:
    """Objects of an answer. :raises Invalid: something else is among them"""
    found = list(settings)
    if not all(isinstance(each, dict) for each in found):
        raise Invalid("the server does not list what it has as one of its kind does: is that its address?")
    return found


def _old(
    raw: Settings,
    format_name: object,
    read: Callable[[Settings, str, str, Plan], _Old | None],
    plan: Plan,
    key: str = "name",
) -> _Old | None:
    name = raw.get(key)
    if not isinstance(name, str) or not isinstance(format_name, str):
        raise Invalid("the server lists a repository without a name or a format")
    served = FORMATS.get(format_name.lower())
    if served is None:
        plan.notes.append(f"{name} is left out: there are no repositories of the format {format_name} here")
        return None
    if LOCAL_NAME.fullmatch(name) is None:
        plan.notes.append(f"{name} is left out: a name has letters, digits, dots, dashes and underscores, at most 64")
        return None
    return read(raw, name, served, plan)


def _in_order(old: Sequence[_Old], plan: Plan) -> Iterator[_Old]:
    """Put the repositories into the plan, members first. Yields those that are in it."""
    left = {each.name: each for kind in _KINDS for each in old if each.kind == kind}
    known = set[str]()

    def visit(each: _Old) -> Iterator[_Old]:
        del left[each.name]
        for name in each.members:
            if name in left:
                yield from visit(left[name])
        if _add(each, known, plan):
            known.add(each.name)
            yield each

    while left:
        yield from visit(next(iter(left.values())))


def _add(each: _Old, known: Set[str], plan: Plan) -> bool:
    """Put a repository into the plan, of whose members those that are ``known`` are in it; False if it has none."""
    config = dict(each.config)
    if each.kind == "Virtual":
        members = [name for name in each.members if name in known]
        plan.notes += [f"{each.name}: its member {name} is left out" for name in each.members if name not in known]
        if not members:
            plan.notes.append(f"{each.name} is left out: it has no members")
            return False
        config["members"] = [plan.place(name) for name in members]
        if each.publish_to in members:
            config["publish_to"] = plan.place(each.publish_to)
    plan.repositories.append(
        {
            "name": each.name,
            "storage": plan.storage,
            "format": each.format,
            "visibility": plan.visibility,
            "description": each.description,
            "active": each.active,
            "config": {"type": each.kind, **config},
        }
    )
    return True


def _read_nexus(raw: Settings, name: str, served: str, plan: Plan) -> _Old | None:
    active, kind = raw.get("online") is not False, raw.get("type")
    if kind == "hosted":
        policy, maven = table(raw, "storage").get("writePolicy"), table(raw, "maven").get("versionPolicy")
        config = _hosted(served, name, overwrite=str(policy).lower() == "allow", versions=str(maven).upper(), plan=plan)
        if served == "docker" and table(raw, "storage").get("latestPolicy") is True:
            config["policy"] = {"overwrite_exempt": ["latest"]}
        if str(policy).lower() == "deny":
            plan.notes.append(f"{name} is read-only there: give nobody the action write in it")
        for cleanup in texts(table(raw, "cleanup").get("policyNames")):
            plan.notes.append(f"{name}: the cleanup policy {cleanup} is not taken over; see retention")
        return _Old(name, served, "Hosted", config, active=active)
    if kind == "proxy":
        client = table(raw, "httpClient")
        if client.get("authentication"):
            plan.notes.append(f"{name}: its upstream wants credentials, which no API tells: set proxy.routes[0].auth")
        rule = raw.get("routingRuleName") or raw.get("routingRule")
        if rule:
            plan.notes.append(f"{name}: the routing rule {rule} is not taken over; see proxy.routes[].packages")
        return _proxy(name, served, table(raw, "proxy").get("remoteUrl"), active=active, plan=plan)
    if kind == "group":
        group = table(raw, "group")
        return _Old(
            name,
            served,
            "Virtual",
            members=texts(group.get("memberNames")),
            publish_to=str(group.get("writableMember") or ""),
            active=active,
        )
    plan.notes.append(f"{name} is left out: there are no repositories of the type {kind} here")
    return None


def _plan_connector(url: str, raw: Settings, plan: Plan) -> None:
    """Images are at a port of their own there."""
    docker, name = table(raw, "docker"), str(raw.get("name"))
    secure, plain = docker.get("httpsPort"), docker.get("httpPort")
    port = secure or plain
    if not isinstance(port, int):
        if raw.get("type") == "hosted":
            plan.notes.append(f"{name} has no connector: give it a port there, and take it in by that")
        return
    host = urlsplit(url).hostname or ""
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    plan.hosts[address] = plan.place(name)
    if raw.get("type") == "hosted":
        scheme = "https" if secure else "http"
        plan.takes.append(Take(["container", f"{scheme}://{address}"], plan.place(name)))


def _read_artifactory(raw: Settings, name: str, served: str, plan: Plan) -> _Old | None:
    active, kind = raw.get("blackedOut") is not True, str(raw.get("rclass")).lower()
    description = str(raw.get("description") or "")[:2000]
    if kind in ("local", "federated"):
        handled = raw.get("handleReleases") is not False, raw.get("handleSnapshots") is not False
        versions = {(True, False): "RELEASE", (False, True): "SNAPSHOT"}.get(handled, "MIXED")
        config = _hosted(served, name, overwrite=True, versions=versions, plan=plan)
        return _Old(name, served, "Hosted", config, description=description, active=active)
    if kind == "remote":
        if raw.get("username"):
            plan.notes.append(f"{name}: its upstream wants credentials, which no API tells: set proxy.routes[0].auth")
        url = raw.get(_UPSTREAM.get(served, ""), raw.get("url"))
        if (served == "cargo" and raw.get("cargoInternalIndex") is not True) or (
            served == "go" and raw.get("vcsGitProvider", _GO_PROXY) != _GO_PROXY
        ):
            plan.notes.append(f"{name} is left out: its upstream is a server of git; give a proxy another one by hand")
            return None
        return _proxy(name, served, url, description=description, active=active, plan=plan)
    if kind == "virtual":
        return _Old(
            name,
            served,
            "Virtual",
            members=texts(raw.get("repositories")),
            publish_to=str(raw.get("defaultDeploymentRepo") or ""),
            description=description,
            active=active,
        )
    plan.notes.append(f"{name} is left out: there are no repositories of the type {kind} here")
    return None


def _hosted(served: str, name: str, *, overwrite: bool, versions: str, plan: Plan) -> dict[str, Any]:
    config = _OVERWRITE[served](overwrite) if served in _OVERWRITE else {}
    if overwrite and not config:
        plan.notes.append(f"{name} took the same version twice there; here a version that was published stays as it is")
    if served == "maven":
        accepted = {"RELEASE": "RELEASES", "SNAPSHOT": "SNAPSHOTS"}.get(versions, "STAGES")
        config.setdefault("push_rules", {})["push_policy"] = accepted
    return config


def _proxy(name: str, served: str, url: object, *, active: bool, plan: Plan, description: str = "") -> _Old | None:
    if not isinstance(url, str) or not url:
        plan.notes.append(f"{name} is left out: it has no address of an upstream")
        return None
    try:
        parse_url(url)
    except UserInfoError:
        plan.notes.append(f"{name} is left out: the address of its upstream has credentials")
        return None
    except ValueError as error:
        plan.notes.append(f"{name} is left out: the address of its upstream cannot be used: {error}")
        return None
    address = url.rstrip("/")
    if served == "python" and not address.endswith("/simple"):
        address += "/simple"
    return _Old(
        name,
        served,
        "Proxy",
        {"proxy": {"routes": [{"url": f"{address}/"}]}},
        description=description,
        active=active,
    )


def table(raw: Settings, key: str) -> Settings:
    """An object in another one; empty if there is none."""
    found = raw.get(key)
    return found if isinstance(found, dict) else {}


def texts(found: object) -> list[str]:
    """The texts of a list; none if it is no list."""
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
