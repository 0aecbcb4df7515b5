from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.format import container
from pkgrepo.formats.npm.format import npm
from pkgrepo.formats.python.format import python
from pkgrepo.model.advisories import Advisory
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.repositories.policy.conditions import DAY_MS, SERVER, Facts, LaterRule, Placed
from pkgrepo.repositories.policy.effective import CompanionRules
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.refusals import refusal
from pkgrepo.repositories.policy.rules import RuleSet, Ruling, Verdict
from pkgrepo.repositories.policy.schema import Order, PolicyRule, RuleMatch, check_rules
from pkgrepo.storage.catalog.server.judged import Judged

NPM, PYTHON = npm(), python()
ORDER, PEP = order_of(NPM), order_of(PYTHON)
IMAGES = order_of(container())
NOW = 100 * DAY_MS
SHA = f"sha256:{'a' * 64}"
SEVERE = Advisory(
    id="GHSA-x", ecosystem="npm", package="left", title="", url="", severity="high", aliases=("CVE-2024-1",)
)


def decide(given: dict[str, Any], facts: Facts, order: Order = ORDER, **more: Any) -> Verdict:
    placed = Placed(msgspec.convert({"name": "r", **given}, PolicyRule), "main/npm")
    return RuleSet([placed], order, **more).decide(facts, NOW)


def left(version: str = "1.3.1", **more: Any) -> Facts:
    return Facts(package=more.pop("package", "left"), versions=(version,), **more)


@pytest.mark.parametrize(
    ("match", "facts", "refused"),
    [
        ({}, left(), True),
        ({"packages": ["left"]}, left(), True),
        ({"packages": ["LEFT"]}, left(), True),
        ({"packages": ["right", "le*"]}, left(), True),
        ({"packages": ["left-*"]}, left(), False),
        ({"versions": ">=1.3,<1.4"}, left(), True),
        ({"versions": ">=1.3 <1.4"}, left("1.10.0"), False),
        ({"versions": "1.3.1"}, left(), True),
        ({"versions": "v1.3.1"}, left(), True),
        ({"versions": "1.*"}, left(), True),
        ({"versions": "2.0.0 || <1.3.2"}, left(), True),
        ({"versions": "2.0.0 || <1.3.0"}, left(), False),
        ({"digests": [SHA.upper().replace("SHA", "sha")]}, left(digests=frozenset({SHA})), True),
        ({"digests": [SHA]}, left(), False),
        ({"source": "hosted"}, left(), True),
        ({"source": "cached"}, left(), False),
        ({"source": "cached"}, left(source="cached", route="npmjs"), True),
        ({"source": "npmjs"}, left(source="cached", route="npmjs"), True),
        ({"licences": ["GPL-*"]}, left(licences=("(MIT OR gpl-3.0-only)",)), True),
        ({"licences": ["GPL-*"]}, left(licences=("MIT",)), False),
        ({"licences": ["GPL-*"]}, left(), False),
        ({"advisories": "moderate"}, left(advisories=[SEVERE]), True),
        ({"advisories": "critical"}, left(advisories=[SEVERE]), False),
        ({"advisories": "any"}, left(advisories=[]), False),
        ({"advisories": "CVE-2024-1"}, left(advisories=[SEVERE]), True),
        ({"advisories": "low"}, left(), False),
        ({"age_days": 7}, left(published_ms=NOW - 6 * DAY_MS), True),
        ({"age_days": 7}, left(published_ms=NOW - 7 * DAY_MS), False),
        ({"age_days": 7}, left(), True),
        ({"published_after": "1970-02-01T00:00:00Z"}, left(published_ms=31 * DAY_MS), False),
        ({"published_after": "1970-02-01T00:00:00Z"}, left(published_ms=31 * DAY_MS + 1), True),
        ({"published_after": "1970-02-01T00:00:00"}, left(published_ms=0, added_ms=32 * DAY_MS), True),
        ({"published_after": "1970-02-01T00:00:00Z"}, left(), True),
        ({"published_after": "1970-02-01T00:00:00Z", "age_days": 7}, left(published_ms=NOW - 8 * DAY_MS), False),
        ({"install_scripts": True}, left(install_scripts=True), True),
        ({"install_scripts": True}, left(install_scripts=False), False),
        ({"install_scripts": True}, left(), False),
        ({"packages": ["left"], "versions": "2.0.0"}, left(), False),
    ],
    ids=str,
)
def test_a_rule_refuses_what_meets_all_its_conditions(match: dict[str, Any], facts: Facts, refused: bool) -> None:
    assert decide({"match": match}, facts).served is not refused


@pytest.mark.parametrize(
    ("match", "missing", "served", "why"),
    [
        ({"age_days": 7}, None, False, "the time of publication"),
        ({"age_days": 7}, "allow", True, ""),
        ({"licences": ["MIT"]}, None, True, ""),
        ({"licences": ["MIT"]}, "block", False, "the licence"),
        ({"advisories": "any"}, "block", False, "whether it has vulnerabilities"),
        ({"install_scripts": True}, "block", False, "whether it runs a program when it is installed"),
    ],
    ids=str,
)
def test_missing_data_decide_as_the_rule_says(
    match: dict[str, Any], missing: str | None, served: bool, why: str
) -> None:
    verdict = decide({"match": match, "missing": missing}, left())
    assert (verdict.served, verdict.missing) == (served, why)


@pytest.mark.parametrize(("missing", "served"), [(None, False), ("block", False), ("allow", True)])
def test_when_something_was_first_seen_is_no_date_for_a_rule_that_lets_undated_files_pass(
    missing: str | None, served: bool
) -> None:
    rule = {"match": {"age_days": 7}, "missing": missing}
    assert decide(rule, left(published_ms=NOW, first_seen=True)).served is served
    assert not decide(rule, left(published_ms=NOW)).served


@pytest.mark.parametrize(
    ("missing", "facts", "passed"),
    [
        ("allow", left(), "the licence and whether it runs a program when it is installed"),
        ("allow", left(licences=("GPL-3",)), "whether it runs a program when it is installed"),
        ("allow", left(licences=("MIT",)), ""),  # another condition is not met
        ("block", left(unread=frozenset({"licences"}), install_scripts=True), "the licence"),  # which the file tells
        ("block", left(unread=frozenset({"licences"}), install_scripts=False), ""),
    ],
)
def test_a_rule_that_lets_pass_what_is_not_known_says_so(missing: str, facts: Facts, passed: str) -> None:
    rule = {"match": {"licences": ["GPL*"], "install_scripts": True}, "missing": missing}
    verdict = decide(rule, facts)
    assert verdict.served
    assert [(placed.rule.name, why) for placed, why in verdict.passed] == ([("r", passed)] if passed else [])


def test_advisories_that_are_not_complete_may_lack_the_one_that_a_rule_asks_for() -> None:
    rule = {"match": {"advisories": "critical"}, "missing": "block"}
    assert decide(rule, left(advisories=[SEVERE])).served
    assert not decide(rule, left(advisories=[SEVERE], complete=False)).served


@pytest.mark.parametrize(
    ("order", "match"),
    [(ORDER, {"labels": {"a": "b"}}), (IMAGES, {"licences": ["*"]}), (IMAGES, {"advisories": "any"})],
)
def test_a_condition_about_what_the_format_does_not_have_is_never_met(order: Order, match: dict[str, Any]) -> None:
    assert decide({"match": match, "missing": "block"}, left(), order).served


@pytest.mark.parametrize(
    ("exempt", "served"), [("left", True), ("l*", True), ("left@1.3.*", True), ("left@2.*", False), ("@a/left", False)]
)
def test_exemptions_name_packages_or_versions(exempt: str, served: bool) -> None:
    assert decide({"exempt": [exempt]}, left()).served is served


def test_names_are_compared_as_the_format_does() -> None:
    block = {"match": {"packages": ["Acme.Tool", "x_*"]}}
    for package in ("acme-tool", "x-y"):
        assert not decide(block, left(package=package), PEP).served
    assert decide(block, left(package="acme-tool")).served  # another package of npm
    assert not decide({"match": {"versions": "1.0"}}, left("1.0.0"), PEP).served


def test_a_range_holds_only_where_it_means_something_and_what_is_no_version_is_within() -> None:
    block = {"match": {"versions": ">=1.0"}}
    assert decide(block, left("no version"), Order()).served
    assert not decide(block, left("no version")).served
    assert not decide({"match": {"versions": "v*"}}, Facts(package="app", versions=("v2", SHA)), IMAGES).served


@pytest.mark.parametrize(
    ("tags", "served"),
    [
        (("1.3.2",), False),
        (("v1.3",), False),
        (("1.3.9-alpine",), False),
        (("latest", "1.3.1"), False),  # all names of a manifest count
        (("1.4.0-rc.2",), False),
        (("1.4.0",), True),
        (("1.2.9",), True),
        (("latest",), True),
        (("1.3-rc1",), True),
        (("7f3e9a1",), True),
    ],
)
def test_a_range_of_tags_is_in_the_order_of_their_numbers(tags: tuple[str, ...], served: bool) -> None:
    rule = {"match": {"versions": ">=1.3,<1.4"}}
    assert decide(rule, Facts(package="app", versions=(*tags, SHA)), IMAGES).served is served


PRODUCTION, DEVELOPMENT = {"stage": "Production"}, {"stage": "dev", "team": "a"}


@pytest.mark.parametrize(
    ("labels", "known", "served", "why"),
    [
        ([DEVELOPMENT], {"stage": "DEV*"}, False, ""),
        ([PRODUCTION], {"stage": "dev*"}, True, ""),
        ([DEVELOPMENT], {"stage": "dev", "team": "b"}, True, ""),
        ([DEVELOPMENT], {"other": "*"}, True, ""),
        ([PRODUCTION, DEVELOPMENT], {"stage": "dev"}, False, ""),  # one of the platforms
        ([None, DEVELOPMENT], {"stage": "dev"}, False, ""),
        ([None, PRODUCTION], {"stage": "dev"}, True, ""),
        ([], {"stage": "dev"}, True, ""),
    ],
    ids=str,
)
def test_labels_are_those_of_any_platform(labels: Any, known: Any, served: bool, why: str) -> None:
    facts = Facts(package="app", versions=("1",), labels=labels)
    assert decide({"match": {"labels": known}}, facts, IMAGES).served is served
    strict = decide({"match": {"labels": known}, "missing": "block"}, facts, IMAGES)
    fits_or_unknown = not served or not labels or None in labels
    assert (strict.served, strict.missing) == (not fits_or_unknown, "labels" if served and fits_or_unknown else why)


def test_the_end_of_a_rule_and_the_age_tell_when_something_is_served() -> None:
    ends = datetime.fromtimestamp((NOW + DAY_MS) / 1000, UTC)
    verdict = decide({"match": {"age_days": 7}, "until": ends}, left(published_ms=NOW))
    assert verdict.opens_ms == NOW + DAY_MS
    assert decide({"match": {"age_days": 7}}, left(published_ms=NOW)).opens_ms == NOW + 7 * DAY_MS
    assert decide({}, left()).opens_ms is None
    past = datetime.fromtimestamp((NOW - 1) / 1000, UTC)
    assert decide({"until": past}, left()).served


def test_what_several_rules_hold_back_is_served_when_the_last_one_lets_it() -> None:
    days = (3, 7, 5)
    rules = [msgspec.convert({"name": f"r{each}", "match": {"age_days": each}}, PolicyRule) for each in days]
    verdict = RuleSet([Placed(each, "main/npm") for each in rules], ORDER).decide(left(published_ms=NOW), NOW)
    assert verdict.opens_ms == NOW + 7 * DAY_MS


QUARANTINE, BLOCK, WARN = ({"name": name, "action": name} for name in ("quarantine", "block", "warn"))


@pytest.mark.parametrize(
    ("rules", "ruling", "by", "waits"),
    [
        ([QUARANTINE], None, "quarantine", True),
        ([QUARANTINE], Ruling(approved=True), None, False),
        ([QUARANTINE], Ruling(approved=False, reason="bad"), "quarantine", False),
        ([QUARANTINE, BLOCK], Ruling(approved=True), "block", False),
        ([BLOCK, QUARANTINE], None, "block", False),
        ([WARN], None, None, False),
        ([WARN], Ruling(approved=False), "quarantine", False),
        ([], Ruling(approved=False), "quarantine", False),
    ],
)
def test_the_table_of_rules_and_decisions(rules: list[Any], ruling: Ruling | None, by: str | None, waits: bool) -> None:
    placed = [Placed(msgspec.convert(each, PolicyRule), "main/npm") for each in rules]
    rulings = {} if ruling is None else {("left", "1.3.1"): ruling}
    verdict = RuleSet(placed, ORDER, rulings).decide(left(), NOW)
    assert (verdict.by and verdict.by.rule.name, verdict.waits) == (by, waits)
    assert [each.rule.name for each in verdict.warned] == [each["name"] for each in rules if each is WARN]


def test_an_approved_tag_does_not_let_a_denied_manifest_through() -> None:
    rulings = {("left", "latest"): Ruling(approved=True), ("left", SHA): Ruling(approved=False, reason="bad")}
    rules = RuleSet([Placed(msgspec.convert(QUARANTINE, PolicyRule), "main/images")], IMAGES, rulings)
    verdict = rules.decide(Facts(package="left", versions=("latest", SHA)), NOW)
    assert verdict.denied is not None
    assert verdict.denied.reason == "bad"
    assert rules.decide(Facts(package="left", versions=("latest", "sha256:other")), NOW).served


def test_sets_that_decide_alike_have_one_stamp() -> None:
    def stamp(*rules: PolicyRule, owner: str = "a/b", approved: bool | None = None) -> str:
        rulings = None if approved is None else {("left", "1"): Ruling(approved=approved)}
        found = RuleSet([Placed(each, owner) for each in rules], ORDER, rulings).of("left")
        assert found is not None
        return found.stamp

    one, other = PolicyRule(name="a"), PolicyRule(name="b")
    assert stamp(one) == stamp(PolicyRule(name="a"))
    found = {stamp(one), stamp(other), stamp(one, other), stamp(one, owner="c/d"), stamp(one, approved=True)}
    assert len({*found, stamp(one, approved=False)}) == 6


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ([{"name": "a"}, {"name": "A"}], "/rules/1/name"),
        ([{"name": "a", "match": {"digests": ["abc"]}}], "/rules/0/match/digests/0"),
        ([{"name": "a", "match": {"digests": [SHA, SHA[:-1]]}}], "/rules/0/match/digests/1"),
        ([{"name": "a", "match": {"digests": [f"sha384:{'a' * 96}"]}}], "/rules/0/match/digests/0"),
        ([{"name": "a", "match": {"digests": [f"sha512:{'a' * 64}"]}}], "/rules/0/match/digests/0"),
        ([{"name": "a", "match": {"versions": ">= x y"}}], "/rules/0/match/versions"),
        ([{"name": "a", "match": {"versions": "1 ||"}}], "/rules/0/match/versions"),
        ([{"name": "a", "match": {"advisories": "dreadful"}}], "/rules/0/match/advisories"),
        ([{"name": "a", "match": {"labels": {"x": "y"}}}], "/rules/0/match/labels"),
    ],
    ids=str,
)
def test_rules_that_cannot_be_meant_are_refused(given: list[dict[str, Any]], pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_rules(msgspec.convert(given, list[PolicyRule]), [ORDER], "/rules")
    assert refused.value.pointer == pointer


@pytest.mark.parametrize("digest", [f"sha512:{'a' * 128}", f"SHA1:{'a' * 40}", f"md5:{'a' * 32}"])
def test_images_are_known_by_their_sha256_alone(digest: str) -> None:
    rules = [PolicyRule(name="a", match=RuleMatch(digests=[SHA, digest]))]
    with pytest.raises(Invalid, match="known by their sha256") as refused:
        check_rules(rules, [IMAGES], "/rules")
    assert refused.value.pointer == "/rules/0/match/digests/1"
    check_rules(rules, [IMAGES, ORDER], "/rules")
    check_rules(rules, [IMAGES], "/rules", stored=rules)  # one of an earlier release stands in the way of no other


def test_a_range_must_mean_something_in_one_of_the_formats() -> None:
    rules = [msgspec.convert({"name": "a", "match": {"versions": ">=1.0"}}, PolicyRule)]
    with pytest.raises(Invalid, match="this format has no versions"):
        check_rules(rules, [Order()], "/rules")
    check_rules(rules, [Order(), PEP], "/rules")
    check_rules(rules, [IMAGES], "/rules")


def test_time_changes_verdicts_next_when_something_is_old_enough_or_a_rule_ends() -> None:
    ends = datetime.fromtimestamp((NOW + 2 * DAY_MS) / 1000, UTC)
    placed = [
        Placed(msgspec.convert({"name": "age", "match": {"age_days": 7}}, PolicyRule), "a/b"),
        Placed(PolicyRule(name="ends", until=ends), "a/b"),
    ]
    rules = RuleSet(placed, ORDER).of("left")
    assert rules is not None
    assert rules.next_change_ms([NOW - 6 * DAY_MS, None, NOW - 20 * DAY_MS], NOW) == NOW + DAY_MS
    assert rules.next_change_ms([], NOW) == NOW + 2 * DAY_MS


def test_rules_by_name_and_by_pattern_are_found_in_their_order() -> None:
    matches = [{"packages": ["le*"]}, {"packages": ["Left", "x"]}, {}, {"packages": ["right"]}, {"packages": ["l?ft"]}]
    placed = [
        Placed(msgspec.convert({"name": str(number), "match": each}, PolicyRule), "a/b")
        for number, each in enumerate(matches)
    ]
    rules = RuleSet(placed, ORDER)
    for package, names in (("left", "0124"), ("right", "23"), ("other", "2"), ("X", "12")):
        found = rules.of(package)
        assert found is not None
        assert "".join(each.placed.rule.name for each in found.rules) == names


def test_thousands_of_blocks_are_compiled_only_for_the_packages_that_are_asked_for() -> None:
    placed = [Placed(PolicyRule(name=str(n), match=RuleMatch(packages=[f"p{n}"])), "a/b") for n in range(10_000)]
    rules = RuleSet(placed, ORDER)
    found = rules.of("p77")
    assert found is not None
    assert [each.placed.rule.name for each in found.rules] == ["77"]
    assert sum("_packages" in vars(each) for each in rules.rules) == 1


def test_lists_leave_out_what_names_and_versions_alone_decide() -> None:
    rules = [
        {"name": "bad", "match": {"packages": ["left"], "versions": ">=1.3,<1.4"}},
        {"name": "mirror", "match": {"packages": ["far*"], "source": "cached"}, "exempt": ["far@2.0.0"]},
        {"name": "held", "match": {"packages": ["held"]}, "action": "quarantine"},
        {"name": "seen", "match": {"packages": ["left"]}, "action": "warn"},
        {"name": "young", "match": {"packages": ["left"], "age_days": 7}},
        {"name": "ended", "match": {"packages": ["left"]}, "until": "1970-01-01T00:00:00Z"},
        {"name": "ends", "match": {"packages": ["soon"]}, "until": "2100-01-01T00:00:00Z"},
    ]
    placed = [Placed(msgspec.convert(each, PolicyRule), "a/b") for each in rules]
    decided = {("held", "1.0.0"): Ruling(approved=True), ("left", "9.0.0"): Ruling(approved=False)}
    found = RuleSet(placed, ORDER, decided).named("cached", NOW)
    assert found is not None
    assert found.hides("left", ["1.2.9", "1.3.0", "1.3.7", "1.4.0", "9.0.0"]) == {"1.3.0", "1.3.7", "9.0.0"}
    assert found.hides("far", ["1.0.0", "2.0.0"]) == {"1.0.0"}
    assert found.hides("held", ["1.0.0", "1.1.0"]) == {"1.1.0"}
    assert found.hides("other", ["1.0.0"]) == set()
    assert found.ends_ms == datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000
    assert RuleSet(placed[3:6], ORDER).named("cached", NOW) is None
    hosted = RuleSet(placed[1:2], ORDER).named("hosted", NOW)
    assert hosted is not None
    assert hosted.hides("far", ["1.0.0"]) == set()


def test_lists_leave_out_what_was_judged_by_the_rules_of_now() -> None:
    placed = Placed(PolicyRule(name="r", match=RuleMatch(licences=["GPL-*"])), "main/npm")
    rules = RuleSet([placed], ORDER)
    about = rules.of("left")
    assert about is not None
    assert rules.decides_on_facts
    assert rules.named("hosted", NOW) is None
    found = Judged("left", about.stamp, {"1.0.0": None, "1.1.0": NOW + 5, "1.2.0": NOW})
    named = rules.named("hosted", NOW, [found, Judged("right", "of other rules", {"1.0.0": None})], 7)
    assert named is not None
    assert named.hides("left", ["1.0.0", "1.1.0", "1.2.0", "2.0.0"]) == {"1.0.0", "1.1.0"}
    assert named.hides("right", ["1.0.0"]) == set()
    assert (named.stamp, named.ends_ms) == ((0, 7), NOW + 5)
    assert not RuleSet(
        [Placed(PolicyRule(name="r", action="warn", match=placed.rule.match), "x")], ORDER
    ).decides_on_facts


@pytest.mark.parametrize("of_parent", [True, False])
def test_a_companion_asks_for_what_its_own_rules_and_those_of_its_parent_ask(of_parent: bool) -> None:
    digests = Placed(PolicyRule(name="r", match=RuleMatch(digests=[f"sha1:{'0' * 40}"])), "main/py")
    some, none = RuleSet([digests], PEP), RuleSet((), PEP)
    rules = CompanionRules(none if of_parent else some, some if of_parent else none, none, lambda key: [key])
    assert (rules.reads_bytes, rules.reads_metadata) == (True, False)
    about = rules.of("demo")
    assert about is not None
    assert (about.algorithms, about.reads_digests) == ({"sha1"}, True)


@pytest.mark.parametrize(
    ("published_ms", "added_ms", "shown"),
    [
        (NOW - 1, NOW, True),
        (NOW - 1, None, True),
        (None, NOW, True),
        (NOW - 1, NOW + 1, False),  # it came here later than it was published
        (NOW + 1, NOW - 1, False),
        (None, NOW + 1, False),
        (None, None, False),
    ],
)
def test_a_view_shows_what_was_published_and_here_by_then(
    published_ms: int | None, added_ms: int | None, shown: bool
) -> None:
    rule = LaterRule(Placed(PolicyRule(name="then"), "main/npm", later_ms=NOW), ORDER)
    assert rule.matches(left(published_ms=published_ms, added_ms=added_ms), 2 * NOW).met is not shown


@pytest.mark.parametrize(
    ("placed", "lifted_by"),
    [
        ({"owner": SERVER}, "a system manager"),
        ({"owner": "main/npm", "wide": True}, "a system manager"),
        ({"owner": "main/npm"}, "who has the action admin in a member of main/all"),
        ({"owner": "main/all"}, "who has the action admin in main/all"),
    ],
)
def test_a_refusal_names_who_lifts_it(placed: dict[str, Any], lifted_by: str) -> None:
    verdict = Verdict(by=Placed(PolicyRule(name="no"), **placed))
    error = refusal("x", verdict, make_placeholder(1, "main", "all"), make_placeholder(2, "main", "npm"))
    assert error.lifted_by == lifted_by


@pytest.mark.parametrize(
    ("facts", "missing", "served", "waits"),
    [
        (left(contents=frozenset({"native_build", "executable"})), "block", False, False),
        (left(contents=frozenset({"executable"})), "block", True, False),
        (left(contents=frozenset()), "block", True, False),
        (left(), "block", False, False),
        (left(), "quarantine", False, True),
        (left(), "allow", True, False),
        (left(unread=frozenset({"contents"})), "block", True, False),  # it is read before the file is sent
        (left(contents=frozenset({"native_build"})), "quarantine", False, False),  # what is known acts as the rule says
    ],
)
def test_what_a_file_has_inside_is_known_or_missing(facts: Facts, missing: str, served: bool, waits: bool) -> None:
    verdict = decide({"match": {"contents": ["native_build", "install_script"]}, "missing": missing}, facts)
    assert (verdict.served, verdict.waits) == (served, waits)


def test_a_rule_that_can_never_be_met_in_a_format_is_about_no_package_of_it() -> None:
    placed = [Placed(msgspec.convert({"name": "r", "match": {"contents": ["root_user"]}}, PolicyRule), SERVER)]
    assert RuleSet(placed, ORDER).of("left") is None
    assert RuleSet(placed, IMAGES).of("left") is not None


def test_what_waits_for_want_of_data_is_approved_by_an_admin_also_where_the_rule_only_warns() -> None:
    rule = {"match": {"contents": ["native_build"]}, "missing": "quarantine", "action": "warn"}
    assert decide(rule, left()).waits
    assert decide(rule, left(contents=frozenset({"native_build"}))).served
