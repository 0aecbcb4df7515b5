"""The matrices of rules and roads have every road that the formats have: a handler that none of them takes is red."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import pytest
import pytest_twisted

from tests.support.added_formats import ADDED
from tests.support.matrix.checks import read
from tests.support.matrix.incoming import ROADS
from tests.support.matrix.specimens import BAD, READ, SPECIMENS, Specimen
from tests.support.matrix.world import MatrixWorld, matrix_world

ROOMS = {
    "npm": ("npm", "routes"),
    "python": ("python", "routes"),
    "ruby": ("rubygems", "routes", "api.requests"),
    "cargo": ("cargo", "routes", "changes"),
    "conda": ("conda", "routes"),
    "helm": ("helm", "routes"),
    "maven": ("maven", "routes"),
    "go": ("go", "reads", "publishing"),
    "raw": ("raw", "routes"),
    "docker": ("container", "routes"),
}
PEOPLE = "about people, their tokens and their sessions"
OWNERS = "about who may publish, which the owners of the package decide"
NAMES = "names of packages and of versions, as the permissions of the caller let it"
REMOVES = "removes something, or refuses everybody"
HELPER = "no handler: part of others"
PIPELINES = "a token for a pipeline, whose requests are those of any caller"
# Handlers that neither give something of a package out nor make it visible, and why.
OTHERS: Mapping[str, Mapping[str, str]] = {
    "npm": {
        **dict.fromkeys(
            (
                *("change_profile", "login", "profile", "user_document", "whoami", "create_token", "list_tokens"),
                *("logout", "revoke_token", "approve_login", "begin_login", "login_form", "poll_login"),
            ),
            PEOPLE,
        ),
        **dict.fromkeys(("add_owner", "remove_owner", "set_access", "show_access"), OWNERS),
        **dict.fromkeys(("star", "starred", "stars", "stars_of_caller", "of_caller", "of_scope", "of_user"), NAMES),
        **dict.fromkeys(("remove_package", "remove_version", "unset_tag", "remove"), REMOVES),
        **dict.fromkeys(("exists", "authorize_read"), HELPER),
        "answer_exchange": PIPELINES,
        "bulk": "advisories on names that the caller sends",
        "quick": "advisories on names that the caller sends",
        "info": "the repository itself",
        "keys": "the keys of an upstream",
    },
    "python": {
        **dict.fromkeys(("delete_file", "delete_version", "yank", "refuse_upload"), REMOVES),
        **dict.fromkeys(("answer_audience", "answer_mint"), PIPELINES),
        "info": "the repository itself",
        "project_list": NAMES,
        "set_status": "a status of a project, by those who may delete it",
        "search_or_upload": HELPER,
    },
    "ruby": {
        **dict.fromkeys(("create_key", "extend_key", "read_json_key", "read_key"), PEOPLE),
        **dict.fromkeys(("change_owner", "list_owners"), OWNERS),
        "yank": REMOVES,
        "root": "the repository itself",
        "own": NAMES,
    },
    "cargo": {
        **dict.fromkeys(("change_owner", "list_owners"), OWNERS),
        "configuration": "the repository itself",
        "me": "how people get a token",
    },
    "conda": {
        **dict.fromkeys(("find_shard", "find_member_shard", "upstream_folders", "publish_sent"), HELPER),
        "list_unconverted": "wheels that are in no channel, by their names",
    },
    "helm": {},
    "maven": {
        **dict.fromkeys(("publish_sent", "read_sent", "admit", "scope_of", "take_file"), HELPER),
        **dict.fromkeys(("evict", "remove"), REMOVES),
        "find_moved": "the address of a folder with a slash at its end",
    },
    "go": {
        "make_release": HELPER,
        "database": "a checksum database as an upstream passes it on",
        "compare": "what is beside a zip is compared with it, and changes nothing",
    },
    "raw": {
        **dict.fromkeys(("take_file", "take_sent"), HELPER),
        "delete": REMOVES,
    },
    "docker": {
        **dict.fromkeys(("remove_blob", "delete_reference", "cancel_upload"), REMOVES),
        "get_ping": "the server itself",
        "get_catalog": NAMES,
        "get_upload": "how much of an upload has arrived",
    },
}


@pytest_twisted.async_yield_fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    async with matrix_world(tmp_path_factory.mktemp("roads")) as made:
        yield made


def handlers(format: str) -> dict[str, CodeType]:
    """The coroutine functions of a format that its path tables name."""
    room, *tables = ROOMS[format]
    found: dict[str, CodeType] = {}
    for each in tables:
        module = importlib.import_module(f"pkgrepo.formats.{room}.{each}")
        for name, value in vars(module).items():
            if inspect.iscoroutinefunction(value) and value.__module__.startswith(f"pkgrepo.formats.{room}"):
                found[name] = value.__code__
    return {name: code for name, code in found.items() if not name.startswith("_")}


@contextmanager
def called() -> Iterator[set[CodeType]]:
    """The code that runs meanwhile."""
    found: set[CodeType] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            found.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)


async def walk(world: MatrixWorld, specimens: Sequence[Specimen]) -> None:
    """Take every road of the matrices for a format."""
    for specimen in specimens:
        for kind in set(specimen.kinds) & {"hosted", "cold"}:
            name = await world.repository(specimen, kind)
            beside = [path for each in specimen.items for path in each.beside] if kind == "hosted" else []
            paths = [path for each in specimen.items for path in each.paths]
            digest = specimen.bad[0].digests()[0]
            abouts = [path.format(BAD, digest=digest) for path in specimen.abouts]
            for path in (*paths, *beside, *specimen.documents, *specimen.newest, *abouts):
                await read(world, name, path)
    for road in ROADS:
        if road.specimen.format == specimens[0].format:
            name = await world.repository(road.specimen, "hosted", empty=road.empty)
            if road.prepare is not None:
                await road.prepare(world, name)
            await road.ask(world, name, "admin")


@pytest.mark.parametrize("format", ROOMS)
async def test_every_handler_is_on_a_road_of_the_matrices(world: MatrixWorld, format: str) -> None:
    declared, others = handlers(format), OTHERS[format]
    assert others.keys() <= declared.keys()
    with called() as codes:
        await walk(world, [each for each in READ if each.format == format])
    assert {name for name, code in declared.items() if code not in codes and name not in others} == set()


async def test_every_format_has_a_specimen_and_so_has_what_is_derived_of_it(world: MatrixWorld) -> None:
    formats = world.stack.assembly.core.formats
    assert {*formats} - {*ADDED} == {each.format for each in SPECIMENS} == {*ROOMS}
    companions = [each.companion for each in formats.values() if each.companion is not None]
    for parent in {parent for each in companions for parent in each.of}:
        derived = [each for each in READ if each.format == parent and each.id != parent]
        segments = {each.segment for each in companions if parent in each.of}
        assert segments == {path.split("/")[1] for each in derived for path in each.documents}
