import re

import pytest

from pkgrepo.auth.permissions.ownership import check_pattern, ownership
from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.format import conda
from pkgrepo.formats.container.format import container
from pkgrepo.formats.maven.format import maven
from pkgrepo.formats.npm.format import npm
from pkgrepo.formats.python.format import python
from pkgrepo.formats.rubygems.format import ruby
from tests.support.auth import make_repository

FORMATS = {each.name: each for each in (conda(), container(), maven(), npm(), python(), ruby())}


@pytest.mark.parametrize(
    ("format", "package", "patterns", "project_key", "claim"),
    [
        ("docker", "acme/web/api", ("acme/web/api", "acme/web", "acme"), "acme", "acme"),
        ("docker", "acme", ("acme",), "acme", "acme"),
        ("maven", "com.acme:app", ("com.acme:app", "com.acme:*", "com.acme", "com"), None, "com.acme:app"),
        ("maven", "com.acme", ("com.acme", "com"), None, "com.acme"),
        ("maven", "com.acmex:app", ("com.acmex:app", "com.acmex:*", "com.acmex", "com"), None, "com.acmex:app"),
        ("npm", "@acme/x", ("@acme/x", "@acme"), None, "@acme"),
        ("npm", "left-pad", ("left-pad",), None, "left-pad"),
        ("ruby", "rails", ("rails",), None, "rails"),
        ("python", "acme-web-api", ("acme-web-api", "acme-web-*", "acme-*"), None, "acme-web-api"),
        ("python", "acme", ("acme",), None, "acme"),
        ("conda", "acme-x", ("acme-x", "acme-*"), None, "acme-x"),
    ],
)
def test_the_owner_is_looked_for_from_the_most_specific_name_on(format, package, patterns, project_key, claim):
    rule = ownership(make_repository(format=format), package)
    assert (rule.patterns, rule.project_key, rule.claim) == (patterns, project_key, claim)


def test_a_claimed_package_never_makes_a_project_that_a_container_image_could_name():
    for each in ("maven", "npm", "ruby", "python"):
        assert ":" in ownership(make_repository(format=each), "acme").claim_key
    assert ownership(make_repository(format="docker"), "acme/x").claim_key == "acme"


@pytest.mark.parametrize(
    ("format", "pattern", "right"),
    [
        ("maven", "com.acme.*", "com.acme:*"),
        ("maven", "com.acme:app-*", "com.acme:app"),
        ("maven", ":*", "com.acme"),
        ("python", "acme*", "acme-*"),
        ("npm", "@acme/*", "@acme"),
        ("docker", "acme/*", "acme"),
        ("ruby", "*", "gem"),
        ("python", "demo==1", "demo"),
        ("conda", "Acme", "acme"),
        ("npm", "@acme==1", "@acme/x"),
        ("maven", "com.acme:app:1", "com.acme:app"),
        ("docker", "app:v1", "acme/app"),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused_with_the_forms_that_there_are(format, pattern, right):
    repository = make_repository(format=format)
    key = FORMATS[format].package_key
    with pytest.raises(Invalid, match="matches no package"):
        check_pattern(repository, pattern, key)
    check_pattern(repository, right, key)


def test_a_refusal_of_a_pattern_says_how_patterns_of_names_with_hyphens_are_written():
    with pytest.raises(Invalid, match=r"write acme \(one package\) or acme-\*"):
        check_pattern(make_repository(format="python"), "*", FORMATS["python"].package_key)


@pytest.mark.parametrize(
    ("format", "pattern", "compared"),
    [("python", "Acme_Tool", "acme-tool"), ("python", "Acme.X-*", "acme-x-*")],
)
def test_a_pattern_is_written_as_names_are_compared(format, pattern, compared):
    """Else what is stored is not what was declared, and ``repo apply`` would remove it as one that is not wanted."""
    repository, key = make_repository(format=format), FORMATS[format].package_key
    with pytest.raises(Invalid, match=f"but {re.escape(repr(compared))} does"):
        check_pattern(repository, pattern, key)
    check_pattern(repository, compared, key)
