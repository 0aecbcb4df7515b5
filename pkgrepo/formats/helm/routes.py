"""
The path table of a chart repository, with the API of ChartMuseum.

=========================================  ============================================================================
``index.yaml``, ``charts/<file>``          what helm reads; a file is also at ``<file>``
``api/charts``, ``.../<name>``,            entries of the index as JSON, and removal of a version
``.../<name>/<version>``
``.../values``, ``.../templates``          of a version: its default values as YAML, its templates as JSON
``api/charts``, ``api/prov``, a file       uploads, see ``publish``
=========================================  ============================================================================
"""

from __future__ import annotations

from functools import partial
from typing import Final
from urllib.parse import urlsplit

import msgspec

from pkgrepo.errors import existing
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.format_site import Routes, path_parts, unserved
from pkgrepo.gateway.package_files import answer_named_file, inspect_file
from pkgrepo.gateway.refusals import ERRORS
from pkgrepo.gateway.services import Context
from pkgrepo.gateway.whole_lists import WholeLists
from pkgrepo.http.request import Request
from pkgrepo.http.responses import JSON, NO_STORE, Response, json_response
from pkgrepo.model import Action
from pkgrepo.repositories.publish import package_changes
from pkgrepo.repositories.publish_policy import publish_policy

from .chart import read_files
from .entries import ENTRY
from .index import ENTRIES, index_chart
from .names import FOLDER, INDEX, PROVENANCE, chart_path, check_name, file_place, possible_names, split_ending
from .publish import take_request

READS: Final = (b"GET", b"HEAD")
FILES: Final = {"values": "values.yaml", "templates": "templates/"}  # and how the paths of these begin
MOST: Final = 1_000_000_000
YAML: Final = b"application/yaml"
UPLOAD: Final = "charts are uploaded by POST to {}/api/charts"


async def _answer(context: Context[WholeLists], request: Request, parts: list[str]) -> Response:
    if request.method in READS:
        return await _get(context, request, parts)
    match request.method, parts:
        case b"POST", ["api", ("charts" | "prov") as kind]:
            await take_request(context, request, provenance=kind == "prov")
        case b"PUT", [*_, file] if _is_file(parts):
            await take_request(context, request, provenance=file.endswith(PROVENANCE), path=file_place(file))
        case b"DELETE", ["api", "charts", name, version]:
            return await _delete(context, request, name, version)
        case _:
            known = parts[:2] in ([INDEX], ["api", "charts"], ["api", "prov"])
            raise await unserved(context, request, UPLOAD, method=known or _is_file(parts))
    return json_response({"saved": True}, 201)


async def _get(context: Context[WholeLists], request: Request, parts: list[str]) -> Response:
    match parts:
        case ["index.yaml"] | ["api", "charts"]:
            await context.admit(request, Action.READ)
            if parts != [INDEX] and {b"offset", b"limit"} & request.args.keys():
                offset, limit = request.count(b"offset", 0, MOST), request.count(b"limit", MOST, MOST)
                page = await context.caches.page(context, request, ENTRIES, offset, limit)
                return Response(body=page, content_type=JSON, headers=NO_STORE)
            form_of = lambda again: urlsplit(context.url(again)).path if parts == [INDEX] else ENTRIES  # noqa: E731
            return await context.caches.answer(context, request, form_of)
        case [*_, file] if _is_file(parts):
            return await answer_named_file(context, request, file_place(file), possible_names(file))
        case ["api", "charts", name, *version] if not version[1:]:
            return await _entries(context, request, name, *version)
        case ["api", "charts", name, version, ("values" | "templates") as what]:
            return await _files(context, request, name, version, FILES[what])
    raise await unserved(context, request, UPLOAD)


def _is_file(parts: list[str]) -> bool:
    return parts[:-1] in ([], [FOLDER]) and split_ending("".join(parts[-1:])) is not None


async def _entries(context: Context[WholeLists], request: Request, name: str, version: str = "") -> Response:
    """The entries of a chart as JSON, or that of one version. :raises NotFound: there is no such one"""
    await context.admit(request, Action.READ, name)
    state = await context.services.proxy.resolver.state(context.repository, name, revalidate=request.revalidates)
    spliced, state = await state.load(ENTRY)
    if not version:
        return Response(body=spliced.joined(), content_type=JSON, headers=NO_STORE)
    found = (each for each in spliced.fragments if msgspec.json.decode(each)["version"] == version)
    body, refused = next(found, None), state.refusal_of(lambda text: text == version)
    if body is None and refused is not None:
        raise refused
    return Response(body=existing(body, "version", f"{name} {version}"), content_type=JSON, headers=NO_STORE)


async def _files(context: Context[WholeLists], request: Request, name: str, version: str, beginning: str) -> Response:
    """The values of a chart, or its templates as JSON. :raises NotFound: there is no such chart, or it has no values"""
    await context.admit(request, Action.READ, name)
    path = chart_path(check_name(name), version)
    look = partial(read_files, filename=path.rpartition("/")[2], beginning=beginning)
    found = await inspect_file(context.services, context.repository, name, path, look)
    if beginning == FILES["values"]:
        return Response(body=existing(found.get(beginning), "file", beginning), content_type=YAML, headers=NO_STORE)
    return json_response([{"name": each, "data": found[each]} for each in sorted(found)], headers=NO_STORE)


async def _delete(context: Context[WholeLists], request: Request, name: str, version: str) -> Response:
    """Remove a version with its provenance. :raises NotFound: there is none"""
    actor = actor_of(request, await context.admit(request, Action.DELETE, name))
    burn = not publish_policy(context.repository).reuse_deleted_names
    await context.services.content.change(
        package_changes.remove_files, context.repository, name, version, None, actor, index_chart, burn
    )
    return json_response({"deleted": True})


ROUTES: Routes[WholeLists, list[str]] = Routes(
    read=partial(path_parts, advice=UPLOAD),
    answer=_answer,
    changes=lambda request, _parts: request.method not in READS,
    errors=ERRORS,
)
