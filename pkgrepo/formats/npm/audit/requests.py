"""
``npm audit``, answered from the advisories of this server and from those of upstreams.

Upstreams get the bulk request only, whatever the client sent: registries have retired the one about trees. They are
told names and versions, but neither names of packages that are our own nor that of the project.

====================================  =====================  ====================================================
the proxies behind the repository     the server's own       the client gets
====================================  =====================  ====================================================
one has answered                      any                    the advisories of both
one fails                             up to date             those of the server; the log has the failure
one fails                             otherwise              502, 503 or 504
none has audits, or there is none     up to date             those of the server
none has audits                       none, not loaded       404, 503
there is none                         none, not loaded       404, 503; of our own packages alone nobody else knows
none has audits, or there is none     too old                what is found, with a sentence in ``npm-notice``; 503 if
                                                             nothing is
====================================  =====================  ====================================================

A client is never told that nothing is known when no advisories were read. Installs only warn of a failed audit.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
from twisted.logger import Logger

from pkgrepo.errors import Invalid, NotFound, UpstreamFailed
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.audit import matching
from pkgrepo.formats.npm.audit.matching import SEVERITIES, Index
from pkgrepo.formats.npm.authorization import authorize_audit
from pkgrepo.formats.npm.facts import ECOSYSTEM
from pkgrepo.formats.npm.limits import AUDIT
from pkgrepo.gateway.bodies import read_body
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response
from pkgrepo.model import ReadLimits, Repository, RepositoryType
from pkgrepo.model.advisories import HIGHEST, Advisory, AffectedRange, Span
from pkgrepo.proxy.uncached import UncachedQuestion, ask_routes, find_private
from pkgrepo.repositories.advisories.known import Knowledge
from pkgrepo.repositories.semver import Version
from pkgrepo.untrusted.strict_json import ERRORS

log = Logger()

LIMITS: Final = ReadLimits(max_bytes=16 * 1024 * 1024, total_s=30.0)  # clients wait 60 s and longer
BULK: Final = "-/npm/v1/security/advisories/bulk"
_GHSA: Final = re.compile(r"GHSA(?:-[0-9a-z]{4}){3}")
_PARTIAL: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_COMPARATOR: Final = re.compile(r"\s*(>=|<=|>|<|=|)\s*([^\s<>=]+)")
EVERYTHING: Final = AffectedRange(), (b"", HIGHEST)
Entries = Mapping[str, Sequence[Mapping[str, Any]]]


async def bulk(context: Context[object], request: Request) -> Response:
    """The advisories on a list of packages and versions."""
    body, cpu = await _receive(context, request), context.services.pools.cpu
    asked = await cpu(matching.read_bulk, body)
    known = await context.services.advisories.knowledge(ECOSYSTEM.name)
    found = await _ask_all(context, asked, known)
    index = await _index(context, known, asked)
    ours = await cpu(matching.bulk_response, asked, index)
    answer = {**ours, **(found or {})}
    return await cpu(_answer, answer, _notice(known, found, any_found=bool(answer), asked=asked))


async def quick(context: Context[object], request: Request) -> Response:
    """The advisories on a tree of packages."""
    body, cpu = await _receive(context, request), context.services.pools.cpu
    try:
        tree = await cpu(matching.read_tree, body)
        asked = await cpu(matching.versions_in, tree)
        known = await context.services.advisories.knowledge(ECOSYSTEM.name)
        found = await _ask_all(context, asked, known)
        if asked and not tree.dependencies:
            # npm 7 to 10 with a lock file of version 3, after a bulk request that has failed.
            raise Refusal(400, "the tree has no versions of the packages that the project requires")
        index = await _index(context, known, asked)
        answer = await cpu(_quick_response, tree, index, found or {})
        notice = _notice(known, found, any_found=bool(answer["advisories"]), asked=asked)
        return await cpu(_answer, answer, notice)
    except RecursionError:
        raise Refusal(400, "the tree is nested too deeply") from None


async def _receive(context: Context[object], request: Request) -> bytes:
    await authorize_audit(context, request)
    return await read_body(request, AUDIT.size)


async def _index(context: Context[object], known: Knowledge, asked: Collection[str]) -> Index:
    return await context.services.advisories.of(ECOSYSTEM.name, asked) if known.loaded else {}


def _notice(known: Knowledge, found: Entries | None, *, any_found: bool, asked: Collection[str]) -> str:
    """
    What the client is to print beside the advisories, empty for nothing.

    :raises Refusal: nothing was found, which means nothing
    """
    if found is not None or known.complete or not asked:
        return ""
    if any_found:
        return known.problem
    raise Refusal(503 if known.has_source else 404, f"nothing was checked: {known.problem}", "no_advisories")


async def _ask_all(context: Context[object], asked: Mapping[str, Sequence[str]], known: Knowledge) -> Entries | None:
    """What the proxies behind this repository say; None if none of them was asked, or has audits. See the table."""
    found: dict[str, Any] = {}
    answered, absent = False, ""
    async for proxy, private in _proxies(context, asked):
        told = {name: versions for name, versions in asked.items() if name not in private}
        if not told:
            continue
        try:
            found = {**await _ask(context, proxy, told), **found}
            answered = True
        except NotFound:
            absent = absent or proxy.path
        except UpstreamFailed as error:
            if not known.complete:
                raise
            log.warn("an audit goes without {repository}: {error}", repository=proxy.path, error=str(error))
    if absent and not answered and not known.has_source:
        raise Refusal(404, f"no upstream of {absent} answers audits", "no_audits")
    return found if answered else None


async def _proxies(context: Context[object], names: Collection[str]) -> AsyncIterator[tuple[Repository, set[str]]]:
    """The proxies behind this repository, and the names that each must not be told."""
    members = context.services.proxy.resolver.flat_members(context.repository)
    for each in members:
        if each.type is RepositoryType.PROXY and each.active:
            member = context.services.proxy.resolver.flat_member(context.repository, each)
            yield each, await find_private(context.services.catalog, members, member, names)


async def _ask(context: Context[object], proxy: Repository, told: Mapping[str, Sequence[str]]) -> Entries:
    """:raises NotFound: no route has audits; :raises UpstreamFailed: one failed, and none has answered"""
    cpu = context.services.pools.cpu
    question = await cpu(bulk_question, told)
    body = await ask_routes(context.services.proxy.upstreams, proxy, question)
    try:
        return await cpu(read_bulk_response, body, told.keys())
    except Invalid as error:
        raise UpstreamFailed(proxy.path, str(error)) from None


def _quick_response(tree: matching.Node, index: Index, found: Entries) -> dict[str, Any]:
    theirs = {name: [read_advisory(name, each) for each in entries] for name, entries in found.items()}
    return matching.quick_response(tree, {**index, **theirs})


def _answer(value: dict[str, Any], notice: str) -> Response:
    # npm prints what is in this field of any response.
    more = ((b"Npm-Notice", notice.encode("latin-1", "replace")),) if notice else ()
    return json_response(value, headers=(*NO_STORE, *more))


def bulk_question(told: Mapping[str, Sequence[str]]) -> UncachedQuestion:
    """The question about the versions of each package."""
    return UncachedQuestion("audit", BULK, LIMITS, body=msgspec.json.encode(told))


def read_bulk_response(body: bytes, asked: Collection[str]) -> Entries:
    """
    The advisories by package, of those that were asked about.

    :raises Invalid: it is no answer to an audit, such as a page, or an error in JSON
    """
    try:
        body.decode()
        found = msgspec.json.decode(body, type=dict[str, list[dict[str, Any]]])
    except ERRORS:
        raise Invalid("its answer to an audit cannot be read") from None
    return {name: each for name, each in found.items() if name in asked}


def read_advisory(package: str, entry: Mapping[str, Any]) -> Advisory:
    """
    An advisory of a bulk answer, for a response about a tree.

    What it does not say is taken for the worst: an unknown severity, and versions in a form that is not understood.
    """
    url = _text(entry, "url")
    found = _GHSA.search(url)
    number = entry.get("id")
    name = found[0] if found else url or str(number)[:100]
    severity = _text(entry, "severity")
    cvss = entry.get("cvss")
    score = cvss.get("score") if isinstance(cvss, dict) else None
    vector = cvss.get("vectorString") if isinstance(cvss, dict) else None
    cwe = entry.get("cwe")
    ranges = read_ranges(_text(entry, "vulnerable_versions"))
    return Advisory(
        id=name,
        ecosystem=ECOSYSTEM.name,
        number=number if isinstance(number, int) else 0,
        package=package,
        title=_text(entry, "title"),
        url=url,
        severity=severity if severity in SEVERITIES else SEVERITIES[-1],
        score=score if isinstance(score, int | float) else 0.0,
        vector=vector if isinstance(vector, str) else "",
        cwe=tuple(each for each in cwe if isinstance(each, str)) if isinstance(cwe, list) else (),
        ranges=tuple(each for each, _ in ranges),
        spans=tuple(span for _, span in ranges),
    )


def read_ranges(text: str) -> Sequence[tuple[AffectedRange, Span]]:
    """The ranges in npm's syntax, as advisories have them; one that is not understood has all versions."""
    return [_read_range(each) for each in text.split("||")]


def _read_range(text: str) -> tuple[AffectedRange, Span]:
    lower = upper = ""
    included = False  # the upper end
    at = 0
    text = text.strip()
    while at < len(text):
        match = _COMPARATOR.match(text, at)
        version = None if match is None else _version(match[1], match[2])
        if match is None or version is None:
            return EVERYTHING
        at = match.end()
        if match[1] in (">=", ">", "=", ""):
            bound = _next(version) if match[1] == ">" else version.text
            lower = max(lower, bound, key=_order)
        if match[1] in ("<", "<=", "=", ""):
            with_end = match[1] != "<"
            if not upper or (_order(version.text), with_end) < (_order(upper), included):
                upper, included = version.text, with_end
    end = HIGHEST if not upper else ECOSYSTEM.builds(upper)[1] if included else _order(upper)
    return AffectedRange(lower, "" if included else upper, upper if included else ""), (_order(lower), end)


def _version(operator: str, text: str) -> Version | None:
    """The version of a bound. Missing parts are zero where npm takes them for that."""
    if operator in (">=", "<") and _PARTIAL.fullmatch(text):
        text += ".0" * (2 - text.count("."))
    return semver.find_version(text)


def _next(version: Version) -> str:
    """The lowest version above another one: the first prerelease behind it."""
    if version.is_prerelease:
        return f"{version.key}.0"
    major, minor, patch = version.key.split(".")
    return f"{major}.{minor}.{int(patch) + 1}-0"


def _order(text: str) -> bytes:
    version = semver.find_version(text)
    return b"" if version is None else version.sort


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""
