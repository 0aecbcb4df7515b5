"""How people write which versions rules are about: in the grammar of each format, and in the one that all share."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.format import conda
from pkgrepo.formats.container.format import container
from pkgrepo.formats.maven.format import maven
from pkgrepo.formats.npm.format import npm
from pkgrepo.formats.python.format import python
from pkgrepo.formats.rubygems.format import ruby

RANGES = {each.name: each.ranges for each in (npm(), python(), ruby(), maven(), conda(), container())}

MEANT = [  # a format, a text, what it is about, and what it is not about
    ("python", "1.5", "1.5 1.5.0 v1.5 1.5+local 1.5.0+cu118", "1.5.1 1.4 1.5rc1"),
    ("python", "==1.5", "1.5 1.5+local", "1.5.post1 1.5.1"),
    ("python", "=1.5", "1.5 1.5+local", "1.5.1"),
    ("python", "1.5+local", "1.5+local 1.5.0+local", "1.5 1.5+other"),
    ("python", "<=1.5", "1.5+local 1.4 1.5 1.5rc1", "1.5.post1 1.6"),
    ("python", "<1.5", "1.4 1.5rc1 1.4+local", "1.5 1.5+local"),
    ("python", ">1.5", "1.5.1 1.5.post1", "1.5 1.5+local 1.4"),
    ("python", ">=1.5", "1.5 1.5+local 2.0", "1.4 1.5rc1"),
    ("python", "!=1.5", "1.4", "1.5 1.5+local"),
    ("python", "~=1.5", "1.5 1.9 1.5+local", "2.0 1.4"),
    ("python", "~=1.5.2", "1.5.2 1.5.9", "1.6 1.5.1"),
    ("python", "==1.5.*", "1.5 1.5.0 1.5.9 1.5a1 1.5+local", "1.50 1.4"),
    ("python", "1.5.*", "1.5 1.5.9 1.5a1 1.5+local", "1.50 1.6"),
    ("python", "!=1.5.*", "1.4 1.6", "1.5 1.5.1"),
    ("python", ">=1.0,!=1.5.*,<2", "1.4 1.6", "1.5.1 2.0 0.9"),
    ("python", "===1.0", "1.0", "1.1"),
    ("python", ">=1!2.0", "1!2.0 1!2.1", "2.0 3.0"),
    ("python", "2004d", "2004d", "2004e 1.0"),
    ("python", "1.0 || ~=2.1", "1.0 2.5", "1.1 3.0"),
    ("npm", "^1.2", "1.2.0 1.9.9 1.5.0-beta 1.2.0-rc.1", "2.0.0 1.1.9 2.0.0-rc.1"),
    ("npm", "^1.2.3", "1.2.3 1.9.9 1.3.0-rc.1", "1.2.2 2.0.0"),
    ("npm", "^0.2.3", "0.2.3 0.2.9", "0.3.0 0.2.2"),
    ("npm", "~1.2", "1.2.0 1.2.9", "1.3.0 1.3.0-rc.1"),
    ("npm", "~1.2.3", "1.2.3 1.2.9", "1.2.2 1.3.0"),
    ("npm", "1.x", "1.0.0 1.9.9 1.0.0-rc.1", "2.0.0 0.9.0"),
    ("npm", "1.2.x", "1.2.0 1.2.9-a", "1.3.0"),
    ("npm", "1.2.*", "1.2.0 1.2.9", "1.3.0 1.20.0"),
    ("npm", "1.*", "1.0.0 1.9.0-rc.1", "2.0.0 10.0.0"),
    ("npm", "1.2", "1.2.0 1.2.9", "1.3.0"),
    ("npm", "1.2.3", "1.2.3 v1.2.3", "1.2.4 1.2.3-rc.1"),
    ("npm", "<=1.2", "1.2.9 1.0.0", "1.3.0"),
    ("npm", ">=1.0 <2.0", "1.0.0 1.5.0-beta 2.0.0-rc.1", "2.0.0 0.9.0"),
    ("npm", ">=1.3,<1.4", "1.3.0 1.3.7", "1.4.0 1.10.0"),
    ("npm", "1.2 - 1.4", "1.2.0 1.4.9", "1.5.0 1.1.0"),
    ("npm", "^1.2 || ~3.1", "1.3.0 3.1.9", "2.0.0 3.2.0"),
    ("npm", "*", "1.0.0 2.0.0-rc.1", ""),
    ("ruby", "~> 1.2", "1.2 1.9.9 1.5-java 1.2.0", "2.0 1.1"),
    ("ruby", "~> 1.2.3, != 1.2.5", "1.2.3 1.2.9-x86_64-linux", "1.2.5 1.3 1.2.5-java"),
    ("ruby", "1.5", "1.5 1.5.0 1.5-java", "1.5.1"),
    ("ruby", "1.5.*", "1.5 1.5.3 1.5.3-java", "1.50 1.6"),
    ("ruby", "<= 1.5", "1.5 1.5-java 1.5.a", "1.5.1"),
    ("maven", "[1.0,2.0)", "1.0 1.9-SNAPSHOT 1.5.0", "2.0 0.9"),
    ("maven", "(,1.0],[2.0,)", "0.1 1.0 2.0 3", "1.5"),
    ("maven", "[1.5]", "1.5 1.5.0", "1.5.1"),
    ("maven", "1.5", "1.5 1.5.0", "1.5.1 1.5-jre"),
    ("maven", "1.5.*", "1.5 1.5.7", "1.50 1.6"),
    ("maven", ">=1.0,<2.0", "1.0 1.5", "2.0"),
    ("maven", "*-jre", "33.0-jre", "33.0-android"),
    ("conda", "1.5.*", "1.5 1.5.3 1.5", "1.50 1.6"),
    ("conda", "=1.5", "1.5 1.5.3 1.5.0", "1.50 1.6"),
    ("conda", "==1.5", "1.5 1.5.0", "1.5.1"),
    ("conda", "1.5", "1.5 1.5.0", "1.5.1"),
    ("conda", ">=1,<2", "1.0 1.9", "2.0 0.9"),
    ("conda", ">=1.0 <2.0", "1.0 1.9", "2.0"),
    ("conda", "~=1.5", "1.5 1.9", "2.0 1.4"),
    ("conda", "1.2|>=2,<3", "1.2 2.5", "1.3 3.0"),
    ("conda", "=1!2.0", "1!2.0 1!2.0.1", "2.0"),
    ("docker", "1.5", "1.5", "1.5.0 v1.5 1.5-alpine latest"),
    ("docker", "1.*", "1 1.5 1.5-alpine", "2.0 v1.5"),
    ("docker", "*-alpine", "1.5-alpine", "1.5"),
    ("docker", ">=1.3,<1.4", "1.3 v1.3.2 1.3.9-alpine 1.4-rc1", "1.4 latest"),
    ("docker", "latest", "latest", "1.0"),
]


@pytest.mark.parametrize(("name", "text", "meant", "others"), MEANT, ids=lambda each: str(each)[:30])
def test_a_text_is_about_versions_as_the_clients_of_the_format_take_it(
    name: str, text: str, meant: str, others: str
) -> None:
    test = RANGES[name].test(text)
    assert [each for each in meant.split() if not test(each)] == []
    assert [each for each in others.split() if test(each)] == []


UNREADABLE = [
    ("python", "~=1", "~=1"),
    ("python", ">=foo", "PEP 440"),
    ("python", "^1.2", "no operator"),
    ("python", "[1.0,2.0)", "neither"),
    ("python", ">=1.*", "pattern"),
    ("npm", "latest", "invalid version"),
    ("npm", "~=1.5", "no operator"),
    ("npm", ">= x y", "no range"),
    ("ruby", "~= 1.5", "no operator"),
    ("ruby", "~> x", "version"),
    ("maven", "[1.0,2.0", "brackets"),
    ("maven", "[]", "brackets"),
    ("maven", "~> 1.5", "no operator"),
    ("conda", "1.0|", "operator before it"),
    ("conda", "^1", "no operator"),
    ("docker", "^1", "no operator"),
    ("docker", ">=latest", "version in front"),
    *((name, "1.0 ||", "nothing on one side") for name in RANGES),
    *((name, ">=1.0 <", "no range") for name in RANGES),
    *((name, "!", "no range") for name in RANGES),
]


@pytest.mark.parametrize(("name", "text", "why"), UNREADABLE)
def test_a_text_that_cannot_be_read_is_refused_with_its_words(name: str, text: str, why: str) -> None:
    with pytest.raises(Invalid, match=why) as refused:
        RANGES[name].test(text, "/versions")
    assert refused.value.pointer == "/versions"


@pytest.mark.parametrize("text", [">=1.0", "==1.5", "~=1.5", "1.5.*"])
def test_what_is_no_version_is_within_ranges_if_the_caller_says_so(text: str) -> None:
    assert not RANGES["python"].test(text)("no version")
    assert RANGES["python"].test(text, unknown=True)("no version") is (text[0] in "=>~")
