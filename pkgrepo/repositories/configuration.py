"""
The configurations of repositories, as far as all formats share them.

A repository type is a class here, whose tag is its value of ``RepositoryType``. A format subclasses it to add its own
fields, and names its classes, joined with ``|``, in its ``Configurations``: there a format gains a type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, Literal, Self, get_args

import msgspec
from attrs import field, frozen

from pkgrepo.auth.permissions.publishers import is_anything, texts_of
from pkgrepo.errors import Invalid
from pkgrepo.model import RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.cron import parse_cron
from pkgrepo.untrusted.patterns import in_words, pattern

AGREED: Final = ("packages",)  # see L{agreed}
MOST_PUBLISHERS: Final = 2000  # of a repository
ISSUER_NAME: Final = pattern("^[a-z0-9][a-z0-9-]{0,31}$", "up to 32 small letters, digits and dashes")
ClaimPattern = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class Auth(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Whether reads of a public repository need credentials."""

    enabled: Annotated[bool, meaning("Reading needs a login or a token, also while the repository is public.")] = False


class PushRules(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The rules for pushes that all formats have. They apply to all changes of packages, removals included."""

    must_be_project_member: Annotated[
        bool, meaning("Only members of the project that owns a name publish, change and remove it.")
    ] = False
    auto_create_projects: Annotated[
        bool,
        meaning(
            "With must_be_project_member: the first pusher of a name that no project owns becomes "
            "the owner of a new project, instead of being refused."
        ),
    ] = False
    must_use_auth_token_for_push: Annotated[
        bool, meaning("Passwords neither publish nor remove, only access tokens do.")
    ] = False
    requires_approval: Annotated[
        bool, meaning("Only those who may approve a stage publish directly; what others publish goes to a stage.")
    ] = False


class RepositoryConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="type"):
    """
    What the configurations of all types have.

    ``type`` and the fields named in ``fixed`` are the fixed object. The other fields are settings, None where not set.
    """

    fixed: ClassVar[tuple[str, ...]] = ()

    auth: Annotated[Auth | None, meaning("Whether reads of a public repository need credentials.")] = None
    page: Annotated[str | None, meaning("A text in Markdown that the console shows above the packages.")] = None

    def normalised(self) -> Self:
        """
        The configuration in the form in which it is stored.

        :raises Invalid: for what the types of the fields do not express, with the JSON pointer of the wrong value
        """
        return self


class RetentionMatch(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a rule of retention is about; all of it has to fit."""

    packages: Annotated[list[str], meaning("Patterns of names, such as acme-*; all packages without any.")] = []
    versions: Annotated[
        str, meaning("A pattern of versions (1.*), a regular expression (/-pr[0-9]/) or a range (>=1.0 <2.0).")
    ] = ""
    tags: Annotated[list[str], meaning("Patterns of tags: what one of these stands for.")] = []
    tagged: Annotated[bool | None, meaning("Only what has a tag, or only what has none.")] = None
    snapshot: Annotated[bool | None, meaning("Only builds of Java snapshots, or none of them.")] = None
    prerelease: Annotated[bool | None, meaning("Only prereleases, or none of them.")] = None
    cached: Annotated[
        bool | None,
        meaning(
            "Only what proxies keep of upstreams, or none of it. Rules of the server take that only if it is true."
        ),
    ] = None


class RetentionKeep(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What stays of what a rule is about; one of these is enough."""

    last: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        meaning("So many of the highest versions, newest images or newest builds of a snapshot."),
    ] = None
    newer_than_days: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=36_500)] | None, meaning("What was published in the last days.")
    ] = None
    downloaded_within_days: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None, meaning("What was downloaded in the last days.")
    ] = None
    tagged: Annotated[list[str], meaning("What a tag that matches a pattern stands for.")] = []
    in_use: Annotated[bool, meaning("Images that are part of another one.")] = True
    pinned: Annotated[bool, meaning("What is pinned.")] = True


class RetentionRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One rule of retention. What any rule keeps stays, whatever the others say."""

    name: Annotated[str, meaning("Its name, which is the reason that people are told.", min_length=1, max_length=100)]
    enabled: Annotated[bool, meaning("Whether it applies.")] = True
    match: Annotated[RetentionMatch, meaning("What it is about.")] = RetentionMatch()
    keep: Annotated[RetentionKeep, meaning("What of that stays.")] = RetentionKeep()
    action: Annotated[
        Literal["trash", "delete", "untag"],
        meaning(
            "What becomes of the rest: to the trash, deleted for good, or only its tags removed. What proxies keep is "
            "always evicted: it is fetched again when it is wanted."
        ),
    ] = "trash"


class Retention(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Which versions go by themselves, and when."""

    enabled: Annotated[bool, meaning("Whether it runs by the schedule.")] = True
    schedule: Annotated[str, meaning("When it runs: a cron text, in UTC.")] = "15 3 * * *"
    max_delete_percent: Annotated[
        int, meaning("A run that would remove a greater part of the repository waits for confirmation.", ge=0, le=100)
    ] = 20
    rules: Annotated[list[RetentionRule], meaning("The rules.", max_length=32)] = []
    max_age_days: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None,
        meaning("A short form of a rule: what is older goes to the trash."),
    ] = None
    keep_latest_per_package: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        meaning("With the short form: so many versions of each package stay."),
    ] = None


class PipelinePublisher(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Pipelines that publish with identity tokens of an issuer, without a password or a stored token."""

    issuer: Annotated[str, meaning("The name of an issuer in the settings, auth.issuers.", pattern=ISSUER_NAME)]
    claims: Annotated[
        dict[str, ClaimPattern | Annotated[list[ClaimPattern], msgspec.Meta(min_length=1, max_length=16)]],
        meaning(
            'What the claims of an identity token must be, as patterns: {"repository": "acme/*"}. An asterisk matches '
            "no slash, two match anything. At least one of them must name something. Several patterns are for a claim "
            "that is a list: each of them must match one of its texts.",
            max_length=16,
        ),
    ]
    audience: Annotated[
        str, meaning("The audience of the identity token, instead of that of the issuer.", max_length=500)
    ] = ""
    environment: Annotated[str, meaning("The environment of the job, as a pattern.", max_length=300)] = ""
    packages: Annotated[list[str], meaning("Patterns of names, such as acme-*; all packages without any.")] = []
    actions: Annotated[
        list[Literal["read", "stage", "write", "overwrite", "delete"]],
        meaning(
            "What it may do with these packages; it may always read them. With stage, and without write, it publishes "
            "to stages alone, which somebody approves.",
            min_length=1,
        ),
    ] = msgspec.field(default_factory=lambda: ["read", "write"])


class HostedConfig(RepositoryConfig, frozen=True, tag=RepositoryType.HOSTED.value):
    """The configuration of a hosted repository."""

    retention: Annotated[Retention | None, meaning("Which versions go by themselves, and when.")] = None
    publishers: Annotated[
        Annotated[list[PipelinePublisher], msgspec.Meta(max_length=MOST_PUBLISHERS)] | None,
        meaning("Pipelines that publish without a stored token (trusted publishing)."),
    ] = None

    def normalised(self) -> Self:
        """The stored form. :raises Invalid: a schedule or range cannot be read, or anybody would be a publisher"""
        for index, each in enumerate(self.publishers or ()):
            check_publisher(each, f"/publishers/{index}")
        if self.retention is not None:
            check_retention(self.retention, RepositoryType.HOSTED)
        return self


def agreed(fixed: Mapping[str, Any]) -> dict[str, Any]:
    """
    What a fixed object says of how packages are named.

    It is never changed, and a virtual repository and its members have the same: else a permission or a rule would be
    asked of another name than the one that it was given for.
    """
    return {key: fixed[key] for key in AGREED if fixed.get(key)}


def check_publisher(publisher: PipelinePublisher, pointer: str) -> None:
    """:raises Invalid: it fits every pipeline of the issuer, or a pattern is empty; with its JSON pointer"""
    if "" in publisher.claims:
        raise Invalid("a claim has a name and a pattern", f"{pointer}/claims")
    if all(is_anything(each) for value in publisher.claims.values() for each in texts_of(value)):
        raise Invalid("at least one claim must name something: else every pipeline may publish", f"{pointer}/claims")
    if not all(publisher.packages):
        raise Invalid("an empty pattern matches no package", f"{pointer}/packages")


UNBOUNDED: Final = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\})")  # quantifiers without a limit
MOST_UNBOUNDED: Final = 3  # of a regular expression, and none after a group: others may take forever


def is_expression(text: str) -> bool:
    """Whether versions are written as a regular expression, between slashes."""
    return len(text) > 1 and text[0] == text[-1] == "/"


def check_retention(retention: Retention, type_: RepositoryType | None) -> None:
    """
    Check rules for a repository of this type, or for the server (None).

    :raises Invalid: the schedule or the versions of a rule are none, or it is about nothing; with its JSON pointer
    """
    try:
        parse_cron(retention.schedule)
    except Invalid as error:
        raise Invalid(error.message, "/retention/schedule") from None
    for index, rule in enumerate(retention.rules):
        text = rule.match.versions
        if is_expression(text):
            _check_expression(text[1:-1], f"/retention/rules/{index}/match/versions")
        cached = type_ is RepositoryType.PROXY
        if type_ is not None and rule.match.cached is not None and rule.match.cached is not cached:
            what = "all that a proxy keeps is cached" if cached else "a hosted repository has no cached versions"
            raise Invalid(f"the rule is about nothing: {what}", f"/retention/rules/{index}/match/cached")
        if rule.action == "untag" and (cached or rule.match.cached):
            raise Invalid("tags of proxies are those of their upstreams", f"/retention/rules/{index}/action")


def _check_expression(text: str, pointer: str) -> None:
    if len(text) > 200 or len(UNBOUNDED.findall(text)) > MOST_UNBOUNDED or re.search(r"\)(?:[*+]|\{)", text):
        raise Invalid(
            f"a regular expression has at most 200 characters, {MOST_UNBOUNDED} of * and +, and none of them after a "
            "group",
            pointer,
        )
    try:
        re.compile(text)
    except re.error as error:
        raise Invalid(f"the regular expression is not valid: {error}", pointer) from None


@frozen
class Configurations:
    """
    The configurations that one format takes.

    ``what`` names the format in messages. ``types`` is a subclass of L{RepositoryConfig}, or several joined with ``|``,
    of which ``type`` selects one. ``part_aliases`` are our names of parts by those that other servers use.
    """

    what: str
    types: type[RepositoryConfig] | UnionType
    part_aliases: Mapping[str, str] = field(factory=dict)

    def validate(self, config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """
        Split a configuration into the fixed object with its defaults, and the settings; ``x_`` keys are kept.

        :raises Invalid: an unknown key or a wrong value, with its JSON pointer
        """
        type_ = config.get("type", RepositoryType.HOSTED.value)
        if type_ in set(RepositoryType) - self._served():
            raise Invalid(f"{type_} repositories of {self.what} are not available in this version", "/type")
        settings = {key: value for key, value in config.items() if key.startswith("x_")}
        rest = {key: value for key, value in config.items() if key not in settings}
        try:
            given: RepositoryConfig = msgspec.convert({**rest, "type": type_}, self.types)
        except msgspec.ValidationError as error:
            raise Invalid(*_explain(str(error))) from None
        parsed = given.normalised()
        values = msgspec.to_builtins(parsed)
        fixed = {key: values.pop(key) for key in ("type", *parsed.fixed)}
        return fixed, settings | {key: value for key, value in values.items() if value is not None}

    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the whole configuration; it is not changed."""
        return _schema_of(self.types)

    def _served(self) -> set[object]:
        return {each.__struct_config__.tag for each in get_args(self.types) or (self.types,)}


@cache
def _schema_of(types: type[RepositoryConfig] | UnionType) -> Mapping[str, Any]:
    return msgspec.json.schema(types)  # takes 5 ms


def _explain(message: str) -> tuple[str, str]:
    """Split the message of a msgspec error into its sentence and a JSON pointer."""
    said, _, where = message.partition(" - at `$")
    text = in_words(said)
    pointer = where.rstrip("`").replace(".", "/").replace("[", "/").replace("]", "")
    unknown = re.search(r"(?:unknown|required) field `([^`]*)`", text)
    return text, f"{pointer}/{unknown[1]}" if unknown else pointer
