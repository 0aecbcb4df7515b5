"""
The questions of the OSV API, for programs that ask it about versions: ``pip-audit --osv-url``, scanners.

They are answered from the advisories of the server, without what repositories have. A client that is told of no
vulnerability takes the version for free of them, so questions whose answer is not known are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, field

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Refusal
from pkgrepo.management.api.access_rules import VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record, Text
from pkgrepo.model.advisories import Advisory
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.advisories.known import OnPackage
from pkgrepo.repositories.advisories.package_urls import read_purl
from pkgrepo.repositories.format import Ecosystem

MOST_QUESTIONS: Final = 1000  # as the public API
MOST_ANSWERED: Final = 5000  # vulnerabilities, as in an audit of npm

table = Table("advisories")


class OsvPackage(Body):
    """A package: its name and ecosystem in OSV's words, or its package URL, which may have the version."""

    name: Annotated[Text, meaning("The name of the package in its ecosystem.")] = ""
    ecosystem: Annotated[Text, meaning("The ecosystem in OSV's words.")] = ""
    purl: Annotated[Text, meaning("The package URL, which may have the version.")] = ""


class OsvQuestion(Body):
    """A version of a package. Questions about commits are not answered."""

    package: Annotated[OsvPackage, meaning("The package.")] = field(default_factory=OsvPackage)
    version: Annotated[Text, meaning("The version; empty if the package URL has it.")] = ""
    commit: Annotated[Text, meaning("A commit, about which nothing is answered.")] = ""
    page_token: Annotated[Text, meaning("The mark of the following page, which is never needed.")] = ""


class OsvQuestions(Body):
    """Several questions, which are answered in this order."""

    queries: Annotated[list[OsvQuestion], Meta(max_length=MOST_QUESTIONS), meaning("The questions.")]


class OsvAnswer(Record):
    """The records of the vulnerabilities that affect a version, in the form of the OSV schema."""

    vulns: Annotated[
        list[dict[str, Any]], meaning("The records of the vulnerabilities, in the form of the OSV schema.")
    ]


class OsvAnswers(Record):
    """For each question the ids of the vulnerabilities, and when their records were changed."""

    results: Annotated[list[OsvAnswer], meaning("The answers in the order of the questions.")]


@table.post("/osv/v1/query", VIEWERS, "Ask for the vulnerabilities of a version, as the OSV API is asked", asks=True)
async def query(call: Call, body: OsvQuestion) -> OsvAnswer:
    """
    Each vulnerability once, the worst first. It changes nothing. pip-audit takes the address by --osv-url.

    503 if the advisories of the server are not loaded, too old, or not of this ecosystem, and nothing was found.
    """
    [found] = await _affecting(call, [body])
    return OsvAnswer(vulns=[_record(call, each) for each in found])


@table.post("/osv/v1/querybatch", VIEWERS, "Ask for the vulnerabilities of several versions", asks=True)
async def query_batch(call: Call, body: OsvQuestions) -> OsvAnswers:
    """As the OSV API is asked; the answer has ids and times of change. Otherwise like a single question."""
    answers = await _affecting(call, body.queries)
    results = [OsvAnswer(vulns=[{"id": each.id, "modified": each.modified} for each in found]) for found in answers]
    return OsvAnswers(results=results)


async def _affecting(call: Call, questions: Sequence[OsvQuestion]) -> list[Sequence[Advisory]]:
    """
    The advisories of each question, in their order; the catalog is asked once for each ecosystem.

    :raises Refusal: what is not found of some question means nothing; :raises Invalid: they are too many
    """
    asked = [_read(call, each) for each in questions]
    answers: list[Sequence[Advisory]] = [()] * len(asked)
    for ecosystem in {each.name: each for _, _, each in asked}.values():
        own = {at: (key, version) for at, (key, version, each) in enumerate(asked) if each is ecosystem}
        state = await call.shared.advisories.knowledge(ecosystem.name)
        known = await call.shared.advisories.on_packages(ecosystem.name, sorted({key for key, _ in own.values()}))
        found = await call.shared.pools.cpu(_match, ecosystem, known or {}, list(own.values()))
        if not all(found) and not state.complete:
            raise Refusal(503, f"nothing was checked: {state.problem}", "no_advisories")
        for at, each in zip(own, found, strict=True):
            answers[at] = each
    return answers


def _match(
    ecosystem: Ecosystem, known: Mapping[str, OnPackage], asked: Sequence[tuple[str, str]]
) -> list[Sequence[Advisory]]:
    """What affects each version, by the key of its package. :raises Invalid: see ``_affecting``"""
    answers, count = [], 0
    for key, version in asked:
        found = known[key].affecting(ecosystem.builds(version)[0]) if key in known else ()
        if not found:
            ecosystem.sort(version)  # what is no version is in no range
        count += len(found)
        if count > MOST_ANSWERED:
            raise Invalid(f"an answer has {MOST_ANSWERED} vulnerabilities at most; ask in parts", "/queries")
        answers.append(found)
    return answers


def _read(call: Call, question: OsvQuestion) -> tuple[str, str, Ecosystem]:
    """The key of the package, the version and the ecosystem. :raises Invalid: it has none, or one that no format has"""
    package, version = question.package, question.version
    name, word = package.name, package.ecosystem.partition(":")[0]
    if package.purl:
        checked = [each for each in call.services.formats.values() if each.ecosystem]
        read = read_purl(package.purl, checked, "/package/purl")
        assert read.format.ecosystem is not None, "it is one of these"
        word, name, version = read.format.ecosystem.name, read.name, read.version or version
    by_name = {each.ecosystem.name: each.ecosystem for each in call.services.formats.values() if each.ecosystem}
    if word not in by_name:
        raise Invalid(f"the ecosystem is one of {', '.join(sorted(by_name))}", "/package/ecosystem")
    if not name or not version:
        raise Invalid("a question names a package and a version; those about commits are not answered", "/version")
    return by_name[word].package_key(name), version, by_name[word]


def _record(call: Call, advisory: Advisory) -> dict[str, Any]:
    """The record of an advisory in the form of the OSV schema, with one range that has all events."""
    events: list[dict[str, str]] = []
    for each in advisory.ranges:
        events.append({"introduced": each.introduced or "0"})
        ends = {"fixed": each.fixed, "last_affected": each.last_affected, "limit": each.limit}
        events += [{name: text} for name, text in ends.items() if text]
    known = (each.ecosystem for each in call.services.formats.values() if each.ecosystem)
    semantic = any(each.semantic for each in known if each.name == advisory.ecosystem)
    severity = f"CVSS_V{advisory.vector[5:6]}"
    return {
        "schema_version": "1.6.0",
        "id": advisory.id,
        "modified": advisory.modified,
        "published": advisory.published or None,
        "aliases": list(advisory.aliases),
        "summary": advisory.title,
        "details": advisory.overview,
        "severity": [{"type": severity, "score": advisory.vector}] if advisory.score else [],
        "affected": [
            {
                "package": {"name": advisory.package, "ecosystem": advisory.ecosystem},
                "ranges": [{"type": "SEMVER" if semantic else "ECOSYSTEM", "events": events}] if events else [],
                "versions": list(advisory.versions),
            }
        ],
        "database_specific": {"severity": advisory.severity.upper()},
    }
