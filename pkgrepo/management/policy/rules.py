"""
Rules for all repositories, and blocks.

The rules of one repository are a part of its configuration (``policy.rules``). Blocks hold from the commit on, in every
process. Decisions on what is in ``quarantine`` need the same rights as blocks.

=====================================  ==============================================================================
a change                               needs
=====================================  ==============================================================================
rules for all repositories             a system manager
a block of one repository              the action admin there, or a system manager
a block with a pattern of them         a system manager
a decision on what is in quarantine    the action admin in the repository that has the version, or a system manager
=====================================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import CreatedAt, ObjectId, RuleName
from pkgrepo.management.api.route import Created, Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.model import Action, Repository
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.rule_reach import Reach, RuleReach
from pkgrepo.repositories.policy.conditions import SERVER
from pkgrepo.repositories.policy.effective import malware_rule, own_rules, placed_block, server_rules
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.schema import (
    Order,
    Pattern,
    PolicyRule,
    Reason,
    RuleMatch,
    Rules,
    Versions,
    check_rules,
    find_faults,
    formats_of,
    stamped,
    until_ms,
)
from pkgrepo.repositories.version_ranges import ALTERNATIVE, WILD
from pkgrepo.storage.catalog.server import policy
from pkgrepo.storage.catalog.server.policy import Block
from pkgrepo.storage.catalog.usage_counts import DAY_MS

from .rights import administers, check_rights, manages

table = Table("policy")

DAYS = 30  # of the counts


class CountRecord(Record):
    """How often a rule has matched what was asked for in the last 30 days; repository is the server for its rules."""

    repository: Annotated[str, meaning("The repository whose rule it is; server for its rules.")]
    rule: RuleName
    action: Annotated[str, meaning("The action.")]
    count: Annotated[int, meaning("How often it matched what was asked for in the last 30 days.")]


class ServerRules(Body):
    """The rules for all repositories, in the form of policy.rules."""

    rules: Annotated[Rules, meaning("The rules for all repositories, in the form of policy.rules.")]


class RuleFormats(Record):
    """
    The formats in which all that a rule says means something.

    In others its range of versions, or a condition, cannot be read or can never be met: it is about nothing there.
    """

    rule: RuleName
    formats: Annotated[list[str], meaning("The formats in which all that the rule says means something.")]


class ServerRulesRecord(Record):
    """
    The rules for all repositories, and how often they have matched what was asked for in the last 30 days.

    The warnings are about rules that were taken by an earlier release, and would be refused now.
    """

    measured = frozenset({"own", "counts", "formats", "warnings"})

    rules: Annotated[list[PolicyRule], meaning("The rules for all repositories, in the form of policy.rules.")]
    own: Annotated[
        list[PolicyRule],
        meaning("Those that the server has of its own; one of the rules with the name of one replaces it."),
    ]
    counts: Annotated[list[CountRecord], meaning("How often all of them have matched.")]
    formats: Annotated[list[RuleFormats], meaning("For each rule, where it means something.")]
    warnings: Annotated[
        list[str], meaning("Sentences about rules that an earlier release took, and that would be refused now.")
    ]


class NewBlock(Body):
    """What is refused at once: a package, some versions of it, or digests."""

    repository: Annotated[
        str,
        Meta(min_length=1, max_length=256),
        meaning("A path of a repository, or a pattern of paths such as main/*."),
    ]
    package: Annotated[
        str, Meta(max_length=256), meaning("A name or a pattern of names, also name@version; empty for all.")
    ] = ""
    versions: Annotated[
        Versions, meaning("A range in the order of the format, a version or a pattern, several with || between them.")
    ] = ""
    digests: Annotated[list[Pattern], Meta(max_length=100), meaning("Digests that are refused under every name.")] = []
    reason: Annotated[Reason, meaning("Why it is refused, which clients show.")] = ""
    until: Annotated[datetime | None, meaning("When it ends by itself; null for never.")] = None


class BlockRecord(Record):
    """A block; count is how often it refused something in the last 30 days."""

    id: ObjectId
    repository: Annotated[str, meaning("A path of a repository, or a pattern of paths such as main/*.")]
    package: Annotated[str, meaning("A name or a pattern of names, also name@version; empty for all.")]
    versions: Annotated[
        str, meaning("A range in the order of the format, a version or a pattern, several with || between them.")
    ]
    digests: Annotated[list[str], meaning("Digests that are refused under every name.")]
    reason: Annotated[str, meaning("Why it is refused, which clients show.")]
    until: Annotated[datetime | None, meaning("When it ends by itself; null for never.")]
    by: Annotated[str, meaning("The user who added it.")]
    created_at: CreatedAt
    count: Annotated[int, meaning("How often it refused something in the last 30 days.")]

    @classmethod
    def of(cls, block: Block, count: int = 0) -> Self:
        """The record of a block."""
        return cls(
            id=block.uid,
            repository=block.repository,
            package=block.package,
            versions=block.versions,
            digests=list(block.digests),
            reason=block.reason,
            until=block.ends_at,
            by=block.actor,
            created_at=block.created_at,
            count=count,
        )


class AddedBlock(BlockRecord):
    """A block that holds now, and what it is about."""

    stored: Annotated[int, meaning("How many stored versions, or manifests, it refuses.")]
    known: Annotated[
        int | None, meaning("How many versions in kept documents of upstreams it refuses; null if there are none.")
    ]
    warning: Annotated[str, meaning("A sentence if it refuses nothing that is known.")]


@table.get("/policy/rules", SYSTEM_MANAGERS, "Show the rules for all repositories", every_format=True)
async def show_rules(call: Call) -> ServerRulesRecord:
    """They hold in addition to those of each repository."""
    return await _server_rules(call)


@table.put(
    "/policy/rules",
    SYSTEM_MANAGERS,
    "Replace the rules for all repositories",
    audit="policy.rules",
    conditional=True,
    every_format=True,
)
async def replace_rules(call: Call, body: ServerRules) -> ServerRulesRecord:
    """
    They hold from now on. A range of versions, and each condition, must mean something in one of the formats (422).

    A new rule that does not say what missing data mean gets "missing": "block".
    """
    call.check_unchanged(await _server_rules(call))
    stored = server_rules(call.registry.policy)
    check_rules(body.rules, _orders(call), "/rules", stored)
    given = msgspec.to_builtins(stamped(body.rules, stored))
    await call.write(call.entry(SERVER, {"rules": given}), policy.set_server_rules, given)
    return await _server_rules(call)


@table.command(
    "rules counts",
    columns="REPOSITORY: repository | RULE: rule | ACTION: action | COUNT: count:number",
    nothing="there are no rules",
)
@table.get("/policy/counts", ACCOUNT_HOLDERS, "Count how often rules have matched", every_format=True)
async def count_matches(call: Call) -> list[CountRecord]:
    """
    In the last 30 days, of the rules of repositories that the caller may edit, and of the server for system managers.

    A request is counted when a file or manifest is asked for, and not when a document is made without it.
    """
    counts = await call.catalog.scan(policy.counts_since, call.now_ms // DAY_MS - DAYS)
    found: list[CountRecord] = []
    for each in call.registry.listed():
        rules = own_rules(each)
        if rules and await call.services.callers.authorizer.may(call.identity, Action.EDIT, each):
            found += [_count(each.path, placed.rule, counts) for placed in rules]
    if await manages(call):
        found += (await _server_rules(call)).counts
    return found


def _count(owner: str, rule: PolicyRule, counts: dict[tuple[str, str], int]) -> CountRecord:
    return CountRecord(repository=owner, rule=rule.name, action=rule.action, count=counts.get((owner, rule.name), 0))


@table.command(
    "blocks",
    columns="ID: id | REPOSITORY: repository | PACKAGE: package or digests | VERSIONS: versions or 'all' | "
    "REFUSED: count:number | BY: by | SINCE: created_at:ago | REASON: reason",
    nothing="nothing is blocked",
    more="REFUSED counts the last 30 days.",
)
@table.get("/policy/blocks", ACCOUNT_HOLDERS, "List the blocks")
async def list_blocks(call: Call) -> list[BlockRecord]:
    """System managers see all; others those of single repositories in which they have the action admin."""
    counts = await call.catalog.scan(policy.counts_since, call.now_ms // DAY_MS - DAYS)
    by_name: dict[str, int] = {}
    for (_, name), count in counts.items():
        by_name[name] = by_name.get(name, 0) + count
    every = await call.catalog.scan(policy.list_blocks)
    may_manage = await manages(call)
    return [
        BlockRecord.of(each, by_name.get(f"block {each.uid[:8]}", 0))
        for each in every
        if may_manage or await administers(call, each.repository)
    ]


@table.command(
    "block REPOSITORY [PACKAGE[@VERSIONS]] [VERSION]=versions",
    "{:blocked}",
    options="versions, digest: digests, reason, until:time",
    said={"--until": "When it ends by itself: a date (its end), or a time in UTC."},
    notes="warning",
    about='Block a package, versions of it, or digests at once, as in "block main/mirror left-pad@1.3.1".',
    more='REPOSITORY is a path, or for system managers a pattern such as "main/*".',
)
@table.post(
    "/policy/blocks",
    ACCOUNT_HOLDERS,
    "Block a package or versions of it",
    status=201,
    audit="policy.block",
    every_format=True,
)
async def add_block(call: Call, body: NewBlock) -> Created[AddedBlock]:
    """
    It holds at once, on all workers and nodes: in documents, and for files and manifests by their exact address or
    digest, through virtual repositories, and of what is in a cache, too. The latest version, or tag, is the highest of
    those that are left. Versions are written as in rules; what cannot be read in the format is refused (422). The
    answer tells how many versions it is about now, and warns if these are none.

    A block of a single repository needs the action admin there, one with a pattern a system manager.
    """
    repositories = await check_rights(call, body.repository)
    package, versions = _split(body.package, body.versions)
    if not package and not body.digests:
        raise Invalid("name a package, or digests", "/package")
    match = RuleMatch(packages=[package] if package else [], versions=versions, digests=body.digests)
    _check_match(call, match, repositories)
    ends_ms = until_ms(PolicyRule(name="block", until=body.until))
    if ends_ms is not None and ends_ms <= call.now_ms:
        raise Invalid("this time has passed", "/until")
    where = repositories[0].path if len(repositories) == 1 and not WILD & {*body.repository} else body.repository
    detail = {"package": package, "versions": versions, "digests": body.digests, "reason": body.reason}
    made = await call.write(
        call.entry(where, detail),
        policy.add_block,
        repository=where,
        package=package,
        versions=versions,
        digests=[each.lower() for each in body.digests],
        reason=body.reason,
        ends_ms=ends_ms,
        actor=call.actor.name,
        now_ms=call.now_ms,
    )
    reach = RuleReach(call.catalog, call.services.formats, call.shared.proxy.resolver, call.now_ms)
    found = await reach.count(placed_block(made, SERVER).rule, repositories)
    record = AddedBlock(
        **msgspec.structs.asdict(BlockRecord.of(made)),
        stored=found.stored,
        known=found.known,
        warning=_warning(found, made),
    )
    return Created(record, f"/api/policy/blocks/{made.uid}")


def _warning(found: Reach, made: Block) -> str:
    if found.stored or found.known:
        return ""
    some = "" if found.whole else " in the part of these repositories that was looked at"
    listed = "" if found.known is None else ", and no kept document of an upstream lists one"
    others = any(not each.startswith("sha256:") for each in made.digests)
    unread = ", as far as the digests of files were read already" if others else ""
    about = f"nothing that is stored{some} is meant by this block{listed}{unread}"
    return f"{about}: check how its name and versions are written"


@table.command("unblock ID", "block {id} is removed", more="What it refused is served again at once.")
@table.delete("/policy/blocks/<block>", ACCOUNT_HOLDERS, "Remove a block", audit="policy.unblock")
async def remove_block(call: Call, block: str) -> None:
    """What it refused is served again at once, unless another rule refuses it."""
    found = await call.catalog.look(policy.find_block, block)
    if found is None or not (await manages(call) or await administers(call, found.repository)):
        raise NotFound("block", block)
    await call.write(call.entry(found.repository, {"id": block}), policy.remove_block, block)


async def _server_rules(call: Call) -> ServerRulesRecord:
    await call.registry.refresh()
    rules = server_rules(call.registry.policy)
    counts = await call.catalog.scan(policy.counts_since, call.now_ms // DAY_MS - DAYS)
    own = [each.rule for each in malware_rule(call.registry.policy)]
    return ServerRulesRecord(
        rules=rules,
        own=own,
        counts=[_count(SERVER, each, counts) for each in (*rules, *own)],
        formats=[RuleFormats(rule=each.name, formats=formats_of(each, _orders(call))) for each in rules],
        warnings=find_faults(rules, _orders(call)),
    )


def _orders(call: Call) -> list[Order]:
    """Those of all formats."""
    return [order_of(each) for each in call.services.formats.values()]


def _check_match(call: Call, match: RuleMatch, repositories: Sequence[Repository]) -> None:
    """:raises Invalid: the block means nothing in any of the repositories; the pointers are those of its body"""
    formats = {each.format for each in repositories} or set(call.services.formats)
    orders = [order_of(call.services.formats[each]) for each in sorted(formats)]
    try:
        check_rules([PolicyRule(name="block", match=match)], orders, "")
    except Invalid as error:
        pointer = error.pointer.removeprefix("/0/match").replace("/packages/0", "/package")
        raise Invalid(error.message, pointer) from None


def _split(package: str, versions: str) -> tuple[str, str]:
    """A package and its versions, of which the first may have both: ``left-pad@1.3.1``, ``demo==1.2``, ``g:a:1.0``."""
    name, sign, version = package.partition("==")
    if not sign:
        name, sign, version = package.rpartition("@")
    if not sign and package.count(":") == 2:  # of Java
        name, sign, version = package.rpartition(":")
    if not sign or not name or not version:
        return package, versions
    if not versions:
        return name, version
    return name, f"{version} {ALTERNATIVE} {versions}"
