"""Answers requests for what verifies a package: the keys of registries, and the attestations of a version."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pkgrepo.errors import NotFound, UpstreamFailed, existing
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.authorization import authorize_audit, authorize_read
from pkgrepo.formats.npm.packument.document import FULL_TYPE, attestations_document
from pkgrepo.formats.npm.packument.requests import find_selected
from pkgrepo.formats.npm.paths import bundle_path, tarball_path
from pkgrepo.formats.npm.proxied.normaliser import kept_text
from pkgrepo.formats.npm.proxied.upstream import attestations_question, keys_question
from pkgrepo.formats.npm.signing import find_public_key, keys_document
from pkgrepo.gateway.package_files import find_package_file
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Refusal, Response, json_response
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository, RepositoryType
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.resolving.serving import UpstreamMember, Want
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog.packages import files, packages

_HEADERS: Final[Fields] = ((b"Cache-Control", b"no-cache"),)


async def keys(context: Context[object], request: Request) -> Response:
    """
    The keys that clients verify signatures with, of all members of the repository.

    :raises Refusal: there are none, so that clients expect no signatures
    :raises UpstreamFailed: an upstream failed, and there are no others
    """
    if context.repository.type is not RepositoryType.HOSTED:
        await authorize_audit(context, request)
    found: dict[str, dict[str, Any]] = {}
    failure: UpstreamFailed | None = None
    for each in context.services.proxy.resolver.flat_members(context.repository):
        try:
            keys = await _keys_of(context, each)
        except NotFound:
            continue
        except UpstreamFailed as error:
            failure = failure or error
            continue
        found = {**{id_: key for key in keys if isinstance(id_ := key.get("keyid"), str)}, **found}
    if not found:
        raise failure or Refusal(404, "nothing was signed here yet", "no_keys")
    return json_response({"keys": list(found.values())}, headers=_HEADERS)


async def attestations(context: Context[object], request: Request, name: str, version_text: str) -> Response:
    """The attestations of a version. :raises NotFound: it has none; :raises RuleRefused: a rule refuses its tarball"""
    await authorize_read(context, request, name)
    what = f"{name}@{version_text}"
    version = existing(semver.find_version(version_text), "attestation of", what)
    path = tarball_path(name, version.text)
    await find_package_file(context.services, context.repository, name, path, Want.HEAD)
    members = await context.services.proxy.resolver.members(context.repository, name, Trace())
    for member in members.serving:
        if isinstance(member, UpstreamMember):
            body = await _ask(context, member.repository, attestations_question(name, version.text))
            return Response(body=body.encode(), content_type=FULL_TYPE.encode(), headers=_HEADERS)
        file = await context.services.catalog.look(_find_bundle, member.repository.id, name, version.key)
        if file is not None:
            response = await context.services.files.answer(member.repository, file)
            assert isinstance(response.body, bytes), "a publish accepts no larger bundle"
            bundle = attestations_document(response.body, str(file.attrs.get("predicate_type", "")))
            return Response(body=bundle, content_type=FULL_TYPE.encode(), headers=_HEADERS)
    raise NotFound("attestation of", what)


async def _keys_of(context: Context[object], repository: Repository) -> list[dict[str, Any]]:
    if repository.type is RepositoryType.PROXY:
        return msgspec.json.decode(await _ask(context, repository, keys_question()), type=_Keys).keys
    key = await context.services.catalog.look(find_public_key)
    found: list[dict[str, Any]] = [] if key is None else keys_document([key])["keys"]
    return found


async def _ask(context: Context[object], repository: Repository, question: DocumentRequest) -> str:
    """What the upstreams of a proxy answer, from the cache while it is fresh."""
    documents = context.services.proxy.documents
    held = await documents.get(repository, question, Trace())
    return await documents.read(repository, question, held, lambda parts: kept_text(parts.top))


class _Keys(msgspec.Struct):
    keys: list[dict[str, Any]]


def _find_bundle(reader: Reader, repository_id: int, name: str, version_key: str) -> File | None:
    package = packages.find_package(reader, repository_id, name)
    version = None if package is None else find_selected(reader, package.id, version_key)
    return None if version is None else files.find_file(reader, repository_id, bundle_path(name, version.text))
