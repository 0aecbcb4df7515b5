"""
How rules are written: in the configuration of a repository (``policy.rules``), and for the whole server.

All conditions of a rule have to be met. ``check_rules`` checks what the types of the fields do not express.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from attrs import frozen
from msgspec import Meta

from pkgrepo.archives.inside import DIFFERENCES, WORDS, Difference, Word
from pkgrepo.errors import Invalid
from pkgrepo.model.advisories import SEVERITIES
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.version_ranges import NO_VERSIONS, WILD, Ranges
from pkgrepo.untrusted.patterns import pattern

from .trust import Wanted

MOST_RULES: Final = 200  # of a repository, or of the server
MOST_PATTERNS: Final = 1000  # of one rule
MOST_LABELS: Final = 50  # of one rule
NAMED_DIGESTS: Final = ("sha256", "sha512", "sha1", "md5")  # the algorithms of the digests that rules name
DIGEST: Final = re.compile(r"(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}|sha1:[0-9a-f]{40}|md5:[0-9a-f]{32})")
MALWARE: Final = "malware"  # in place of a severity: what is hostile, of whatever severity
NAMED: Final = re.compile(r"[A-Z][A-Za-z0-9]*-[A-Za-z0-9:._-]{1,80}")  # the id of an advisory, such as CVE-2024-1

_SEPARATORS: Final = re.compile(r"[-_.]+")  # PEP 503

Datum = Literal[
    "age",
    "licences",
    "advisories",
    "install_scripts",
    "contents",
    "licences_inside",
    "differs",
    "trust",
    "labels",
    "digests",
]
# What may not be known of a version. Digests are: one that nothing tells is read of the file before it is sent.
MISSABLE: Final[frozenset[Datum]] = frozenset(
    {"age", "licences", "advisories", "install_scripts", "contents", "licences_inside", "differs", "trust", "labels"}
)
_NEVER: Final[Mapping[Datum, str]] = {
    "licences": "images declare no licence; a label may name one",
    "advisories": "no database of vulnerabilities has records of what this format has",
    "install_scripts": "of no package of this format it is known whether it runs a program when it is installed",
    "contents": "nothing looks into the files of this format",
    "licences_inside": "nothing looks into the files of this format for licences",
    "trust": "of no package of this format it is known who attests it",
    "labels": "only images have labels",
    "differs": "nothing compares versions of this format",
}

_LINE: Final = pattern(r"^[^\x00-\x1f\x7f]*$", "one line without control characters")
Action = Literal["block", "quarantine", "warn"]
Missing = Literal["block", "quarantine", "allow"]
Pattern = Annotated[
    str,
    Meta(min_length=1, max_length=256, pattern=pattern(r"^[^\x00-\x1f\x7f]+$", "at least a character, in one line")),
]
Patterns = Annotated[list[Pattern], Meta(max_length=MOST_PATTERNS)]
Reason = Annotated[str, Meta(max_length=500, pattern=_LINE)]  # it is printed in one line
Versions = Annotated[str, Meta(max_length=2000, pattern=_LINE)]


class RuleMatch(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """What a rule is about: all of it has to fit. Without any condition it is about everything."""

    packages: Annotated[Patterns, meaning("Patterns of names, such as acme-*; all packages without any.")] = []
    versions: Annotated[
        Versions,
        meaning(
            "Versions: a range as clients of the format write it (>=1.3,<1.4, ^1.3, ~=1.3, [1.3,1.4)), a version with "
            "all of its builds, or a pattern (1.*), several with || between them. Of an image these are patterns of "
            "tags, or a range in the order of their numbers."
        ),
    ] = ""
    digests: Annotated[
        Patterns, meaning("Digests of files or manifests, such as sha256: and 64 hexadecimal digits.")
    ] = []
    licences: Annotated[Patterns, meaning("Patterns of licences, such as GPL-*, as the package declares them.")] = []
    advisories: Annotated[
        Annotated[str, Meta(max_length=100)],
        meaning(
            "Known vulnerabilities: the least severity (low, moderate, high, critical, or any), malware for what a "
            "record with an id MAL- names, or an id."
        ),
    ] = ""
    age_days: Annotated[
        Annotated[int, Meta(ge=1, le=3650)] | None, meaning("What was published less than so many days ago.")
    ] = None
    published_after: Annotated[
        datetime | None, meaning("What was published, or added here, after this time, such as 2026-09-01T00:00:00Z.")
    ] = None
    source: Annotated[
        Annotated[str, Meta(max_length=100)],
        meaning("Only what was published here (hosted), or comes from an upstream (cached, or the name of a route)."),
    ] = ""
    install_scripts: Annotated[
        bool | None, meaning("Only what runs a program when it is installed; or only what does not.")
    ] = None
    contents: Annotated[
        Annotated[list[Word], Meta(max_length=len(WORDS))],
        meaning(
            "What the bytes of a file have inside, whatever documents say of it: install_script, native_build, pth, "
            "executable or native_binary, of images root_user or setuid; any of several. The whole file is read before "
            "its first byte is sent."
        ),
    ] = []
    licences_inside: Annotated[
        Patterns,
        meaning(
            "Patterns of licences, such as BUSL-*, as the bytes of a file declare them, or have their texts, whatever "
            "documents say of it; LicenseRef-unknown is another text. The whole file is read before its first byte is "
            "sent."
        ),
    ] = []
    differs: Annotated[
        Annotated[list[Difference], Meta(max_length=len(DIFFERENCES))],
        meaning(
            "What is different from the newest version before it that is served: the first install_script, "
            "native_build, pth or executable, a new dependency, young_dependency (first published less than 60 days "
            "before it) or git_dependency, another publisher, source (its repository has moved), licence or size (four "
            "times), code that is obfuscated (or minified), or files that are unexplained by the source archive of its "
            "tag; any of several. It and two files before are read before the first byte is sent. With age_days only "
            "versions that are so young are compared."
        ),
    ] = []
    trust: Annotated[
        Wanted | None,
        meaning(
            "What is trusted less: fell, it is known less well who published it than of a version before it (a staged "
            "publish with an approval, a trusted publisher with provenance, provenance, or nothing of these); none, it "
            "has no provenance. Provenance is verified before the first byte is sent."
        ),
    ] = None
    labels: Annotated[
        Annotated[dict[Pattern, Pattern], Meta(max_length=MOST_LABELS)],
        meaning("Labels of an image, each with a pattern of its value; all of them, on any of its platforms."),
    ] = {}


class PolicyRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """One rule about what is served."""

    name: Annotated[
        str,
        meaning(
            "Its name, which people are told.",
            min_length=1,
            max_length=100,
            pattern=pattern(r"^\S.*$", "a text that does not begin with a space"),
        ),
    ]
    match: Annotated[RuleMatch, meaning("What it is about.")] = RuleMatch()
    action: Annotated[
        Action,
        meaning("block refuses; quarantine refuses until an admin approves; warn serves, and counts."),
    ] = "block"
    exempt: Annotated[Patterns, meaning("Patterns of names, or name@version, that it is not about.")] = []
    reason: Annotated[Reason, meaning("Why, for those who are refused.")] = ""
    until: Annotated[datetime | None, meaning("When it ends, such as 2026-12-31T00:00:00Z.")] = None
    missing: Annotated[
        Missing | None,
        meaning(
            "What a condition means of which nothing is known, such as a licence that is not declared: block, as if "
            "it were met; quarantine, until an admin approves; or allow. A rule that is written without it gets block, "
            "if it has such a condition; one that an earlier release has stored without it means block for the age, "
            "and allow for all others."
        ),
    ] = None


Rules = Annotated[list[PolicyRule], Meta(max_length=MOST_RULES)]


@frozen
class Order:
    """
    What rules need of a format: how its versions are written, and how names are compared.

    With ``folds`` dashes, underscores and dots are the same in a name. The versions of images are ``tags``. ``is_name``
    tells whether a package can be called so. ``tells`` are the data that the format can have at all, ``contents`` what
    its files can have inside, and ``differs`` what can be compared of its versions. ``algorithms`` are those of the
    digests by which it knows what it has. ``ecosystem`` is OSV's word for it, empty if there is none.
    """

    ranges: Ranges = NO_VERSIONS
    folds: bool = False
    tags: bool = False
    is_name: Callable[[str], bool] = lambda _: True
    tells: frozenset[Datum] = MISSABLE | {"digests"}
    contents: frozenset[Word] = frozenset(WORDS)
    differs: frozenset[Difference] = frozenset(DIFFERENCES)
    algorithms: frozenset[str] = frozenset(NAMED_DIGESTS)
    name: str = ""
    ecosystem: str = ""

    @classmethod
    def of(cls, ranges: Ranges, package_key: Callable[[str], str], **more: Any) -> Order:
        """
        That of a format, whose ``package_key`` makes the key of a name, or raises ``Invalid``.

        ``more`` are further fields.
        """

        def is_name(name: str) -> bool:
            with suppress(Invalid):
                return bool(package_key(name))
            return name != name.lower() and is_name(name.lower())

        try:
            folds = package_key("a_b") == package_key("a-b")
        except Invalid:
            folds = False
        return cls(ranges, folds, is_name=is_name, **more)

    def folded(self, name: str) -> str:
        """A name, or a pattern of names, as it is compared."""
        return _SEPARATORS.sub("-", name).casefold() if self.folds else name.casefold()


class ServingPolicy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The part of every policy that says what is served."""

    rules: Annotated[Rules, meaning("What is blocked, held in quarantine or counted; see Rules in the book.")] = []


def needs_of(match: RuleMatch) -> frozenset[Datum]:
    """What the conditions of a rule ask for beside names, versions and sources."""
    asked: dict[Datum, bool] = {
        "age": match.age_days is not None or match.published_after is not None,
        "licences": bool(match.licences),
        "advisories": bool(match.advisories),
        "install_scripts": match.install_scripts is not None,
        "contents": bool(match.contents),
        "licences_inside": bool(match.licences_inside),
        "trust": match.trust is not None,
        "labels": bool(match.labels),
        "digests": bool(match.digests),
        "differs": bool(match.differs),
    }
    return frozenset(name for name, wanted in asked.items() if wanted)


def stamped(rules: Sequence[PolicyRule], stored: Sequence[PolicyRule]) -> list[PolicyRule]:
    """
    The rules as they are stored: a new one without ``missing`` refuses what it cannot know.

    One of the ``stored`` rules that says nothing of that keeps its meaning, also with another reason, end or action.
    """
    silent = {each.name: each.match for each in stored if each.missing is None}
    return [
        msgspec.structs.replace(each, missing="block")
        if each.missing is None and needs_of(each.match) & MISSABLE and silent.get(each.name) != each.match
        else each
        for each in rules
    ]


def until_ms(rule: PolicyRule) -> int | None:
    """When a rule ends, in ms; None for never."""
    return time_ms(rule.until)


def time_ms(at: datetime | None) -> int | None:
    """A time of a rule, in ms; one without a zone is UTC."""
    return None if at is None else round((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)


def check_rules(
    rules: Sequence[PolicyRule], orders: Sequence[Order], pointer: str, stored: Sequence[PolicyRule] = ()
) -> None:
    """
    Check rules for formats with these orders. Of those that are ``stored`` only the names are checked.

    Those may be of an earlier release that took them: they must not stand in the way of others.

    :raises Invalid: two have one name, a digest is none, or a condition means something in no format, or can never be
        met in any; with the pointer
    """
    names: set[str] = set()
    for index, rule in enumerate(rules):
        place = f"{pointer}/{index}"
        if rule.name.casefold() in names:
            raise Invalid(f"another rule has the name {rule.name!r}", f"{place}/name")
        names.add(rule.name.casefold())
        if rule not in stored:
            _check_rule(rule, orders, place)


def find_faults(rules: Sequence[PolicyRule], orders: Sequence[Order]) -> list[str]:
    """A sentence about each stored rule with a condition that is refused now."""
    faults = []
    for rule in rules:
        try:
            _check_rule(rule, orders, "")
        except Invalid as error:
            faults.append(f"the rule {rule.name!r} would be refused now: {error.message}; change or remove it")
    return faults


def formats_of(rule: PolicyRule, orders: Sequence[Order]) -> list[str]:
    """The names of the formats in which all that a rule says means something."""
    found = []
    for each in orders:
        with suppress(Invalid):
            _check_rule(rule, [each], "")
            found.append(each.name)
    return found


def version_of(exempt: str) -> tuple[str, str]:
    """The pattern of names of an exemption, and what it says of versions; empty for all of them."""
    name, sign, version = exempt.rpartition("@")
    return (name, version) if sign and name else (exempt, "")


def check_exempt(exempt: Sequence[str], orders: Sequence[Order], pointer: str) -> None:
    """:raises Invalid: what an exemption says of versions means something in no format, with the JSON pointer"""
    for number, each in enumerate(exempt):
        _check_versions(version_of(each)[1], orders, f"{pointer}/{number}")


def _check_rule(rule: PolicyRule, orders: Sequence[Order], place: str) -> None:
    _check_match(rule.match, orders, f"{place}/match")
    check_exempt(rule.exempt, orders, f"{place}/exempt")


def _check_match(match: RuleMatch, orders: Sequence[Order], place: str) -> None:
    for number, name in enumerate(match.packages):
        if not WILD & {*name} and not any(each.is_name(name) for each in orders):
            raise Invalid(f"no package can be called {name!r}", f"{place}/packages/{number}")
    _check_digests(match.digests, orders, f"{place}/digests")
    wanted = match.advisories
    if wanted and wanted not in (*SEVERITIES, "any", MALWARE) and not NAMED.fullmatch(wanted):
        severities = ", ".join(SEVERITIES)
        raise Invalid(f"this is a severity ({severities}, any), {MALWARE} or an id", f"{place}/advisories")
    for datum in sorted(needs_of(match)):
        if not any(datum in each.tells for each in orders):
            raise Invalid(f"this condition can never be met here: {_NEVER[datum]}", f"{place}/{datum}")
    if match.contents and not any(each.contents & {*match.contents} for each in orders):
        words = ", ".join(match.contents)
        raise Invalid(f"this condition can never be met here: no file of this format has {words}", f"{place}/contents")
    if match.differs and not any(each.differs & {*match.differs} for each in orders):
        words = ", ".join(match.differs)
        raise Invalid(f"this condition can never be met here: nothing tells {words} of this format", f"{place}/differs")
    _check_versions(match.versions, orders, f"{place}/versions")


def _check_digests(digests: Sequence[str], orders: Sequence[Order], place: str) -> None:
    """Check that texts are digests, each of an algorithm by which one of the formats knows what it has."""
    for number, digest in enumerate(digests):
        if not DIGEST.fullmatch(digest.lower()):
            raise Invalid(
                "a digest is sha256, sha512, sha1 or md5, a colon and all of its hexadecimal digits",
                f"{place}/{number}",
            )
        if not any(digest.partition(":")[0].lower() in each.algorithms for each in orders):
            raise Invalid(
                "this condition can never be met here: manifests and layers of images are known by their sha256",
                f"{place}/{number}",
            )


def _check_versions(text: str, orders: Sequence[Order], pointer: str) -> None:
    """Check that a text says in one of the formats which versions are meant."""
    failure: Invalid | None = None
    for each in orders if text else ():
        try:
            each.ranges.test(text, pointer)
        except Invalid as error:
            failure = failure or error
        else:
            return
    if failure is not None:
        raise failure
