import pytest

from pkgrepo.auth.permissions.ownership import ownership
from tests.support.auth import make_repository


@pytest.mark.parametrize(
    ("format", "package", "patterns", "project_key", "claim"),
    [
        ("docker", "acme/web/api", ("acme/web/api", "acme/web", "acme"), "acme", "acme"),
        ("docker", "acme", ("acme",), "acme", "acme"),
        ("maven", "com.acme.x:app", ("com.acme.x:app", "com.acme.x", "com.acme", "com"), None, "com.acme.x:app"),
        ("maven", "com.acmex:app", ("com.acmex:app", "com.acmex", "com"), None, "com.acmex:app"),
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
