"""Whether dependencies accept versions, in the words and the order of each format."""

import pytest

from pkgrepo.formats.conda.versions import accepts as conda
from pkgrepo.formats.maven.ranges import accepts as maven
from pkgrepo.formats.npm.ranges import accepts as npm
from pkgrepo.formats.python.format import accepts as python
from pkgrepo.formats.rubygems.ranges import accepts as ruby
from pkgrepo.repositories.semver import constraint_accepts as helm

# What node-semver 7, packaging, RubyGems, conda and Maven say: a dependency, versions that it accepts, and others.
NPM = [
    ("a ^1.2.3", "1.2.3 1.9.0", "1.2.2 2.0.0 2.0.0-rc.1 1.3.0-rc.1"),
    ("a ^1.2.3-beta.2", "1.2.3-beta.2 1.2.3-beta.4 1.2.3 1.5.0", "1.2.3-beta.1 1.2.4-beta.2 2.0.0"),
    ("a ^0.2.3", "0.2.3 0.2.9", "0.3.0 0.2.2"),
    ("a ^0.0.3", "0.0.3", "0.0.4 0.0.2"),
    ("a ^0.0", "0.0.0 0.0.9", "0.1.0"),
    ("a ^0", "0.0.1 0.9.0", "1.0.0"),
    ("a ^1.x", "1.0.0 1.9.9", "2.0.0"),
    ("a ~1.2.3", "1.2.3 1.2.9", "1.3.0 1.2.2"),
    ("a ~1.2", "1.2.0 1.2.9", "1.3.0"),
    ("a ~> 1", "1.0.0 1.9.0", "2.0.0"),
    ("a 1.2.3 - 2.3", "1.2.3 2.3.9", "2.4.0 1.2.2"),
    ("a  1.2.3  -  2.3  ", "1.2.3 2.3.9", "2.4.0 1.2.2"),
    ("a >=  1.2   <2", "1.2.0 1.9.0", "2.0.0 1.1.9"),
    ("a 1.2 - 2.3.4", "1.2.0 2.3.4", "2.3.5 1.1.9"),
    ("a >=1.2 <2 || 3.x", "1.2.0 1.9.0 3.1.4", "2.0.0 1.1.9 4.0.0"),
    ("a >1.2", "1.3.0", "1.2.9"),
    ("a <=1.2", "1.2.9 0.1.0", "1.3.0"),
    ("a <1.2", "1.1.9", "1.2.0"),
    ("a >1.2.3", "1.2.4", "1.2.3"),
    ("a 1.2.3", "1.2.3 1.2.3+build", "1.2.4"),
    ("a =v1.2.3", "1.2.3", "1.2.4"),
    ("a *", "1.2.3 0.0.0", "1.0.0-rc.1"),
    ("a ", "1.2.3", "1.0.0-rc.1"),
    ("a >*", "", "1.2.3"),
]
PYTHON = [
    ("a", "1 2.0rc1", ""),
    ("a>=1.2,<2; python_version > '3'", "1.2 1.9.post1", "2.0 1.1"),
    ("a[extra] ~=1.4.2", "1.4.2 1.4.9", "1.5"),
    ("a (!=1.5)", "1.4", "1.5.0"),
    ("a ==1.*", "1.0 1.9", "2"),
]
RUBY = [
    ("a", "1.0 0", ""),
    ("a (~> 1.4)", "1.4 1.9.9 1.10.a", "2.0 1.3 2.0.a"),
    ("a (~> 1.4.2)", "1.4.2 1.4.10", "1.5 1.4.1"),
    ("a (>= 1.0, < 3)", "1.0 2.9-java 3.a", "3 0.9"),
    ("a (!= 1.2)", "1.3", "1.2.0"),
    ("a (= 1.2)", "1.2.0 1.2-x86_64-linux", "1.3"),
    ("a (~> 2)", "2.0 2.9", "3 1.9"),
]
CONDA = [
    ("a", "1 2", ""),
    ("a >=1.2,<2", "1.2 1.9", "2.0 1.1"),
    ("a 1.2.*", "1.2.3 1.2", "1.20 1.3"),
    ("a ==1.2 py39_0", "1.2 1.2.0", "1.3"),
    ("a 1.1|>=2", "1.1 2.5", "1.5"),
]
MAVEN = [
    ("g:a:[1.0,2.0)", "1.0 1.9 2.0-alpha", "2.0 0.9"),
    ("g:a:[ 1.0 , 2.0 )", "1.0 1.9", "2.0 0.9"),
    ("g:a:jar:(1.0,2.0] (test)", "1.1 2.0", "1.0 2.1"),
    ("g:a:[1.5]", "1.5 1.5.0", "1.6"),
    ("g:a:(,1.0],[1.2,) (compile, optional)", "0.9 1.0 1.2 3", "1.1"),
    ("g:a:1.5", "1.5", "1.6"),
    ("g:a:jar:sources:1.5", "1.5", "1.4"),
]
HELM = [
    ("a ^1.2.3", "1.2.3 v1.9.0 1.9.0+b1", "1.2.2 2.0.0 1.3.0-rc.1"),
    ("a ^1.2.3-0", "1.2.3 1.3.0-rc.1 1.2.3-rc.1", "2.0.0 2.0.0-rc.1"),
    ("a ~1.2.0", "1.2.0 1.2.9", "1.3.0"),
    ("a 1.2", "1.2.0 1.2.9", "1.3.0"),
    ("a 1.2.3", "1.2.3 v1.2.3", "1.2.4"),
    ("a 1.x.x", "1.0.0 1.9.0", "2.0.0"),
    ("a >= 1.2, < 3.0.0 || >= 4.2.3", "1.2.0 2.9.9 4.2.3 9.0.0", "3.0.0 4.2.2 1.1.9"),
    ("a >=1.2 <1.4", "1.2.0 1.3.9", "1.4.0"),
    ("a 1.2 - 1.4.5", "1.2.0 1.4.5", "1.4.6 1.1.0"),
    ("a >=1.0, !=1.5.x, !=1.7.1", "1.4.0 1.7.2", "1.5.0 1.5.9 1.7.1"),
    ("a !=1.2.3", "1.2.4 0.1.0", "1.2.3 2.0.0-rc.1"),
    ("a =>1.2,=<1.4", "1.2.0 1.4.9", "1.5.0"),
    ("a *", "1.2.3 0.0.1", "1.0.0-rc.1"),
    ("a >=0.0.0-0", "1.2.3 2.0.0-rc.1", ""),
    ("a >2", "3.0.0", "2.9.0 1.0.0"),
]
CASES = [(npm, NPM), (python, PYTHON), (ruby, RUBY), (conda, CONDA), (maven, MAVEN), (helm, HELM)]
UNKNOWN = [
    (helm, "a latest", "1.0.0"),
    (helm, "a ^1 || what", "1.0.0"),
    (helm, "a 1.2.3.4", "1.0.0"),
    (helm, "a ^1", "one"),
    (helm, f"a 1 -{' ' * 1900}1 !", "1.0.0"),
    (helm, f"a 1{' ' * 1900}!", "1.0.0"),
    (npm, "a latest", "1.0.0"),
    (npm, "a git+https://example.org/a.git", "1.0.0"),
    (npm, "a npm:b@^1.0.0", "1.0.0"),
    (npm, "a ^1.0.0", "one"),
    (python, "a @ https://example.org/a.whl", "1"),
    (python, "a>=1", "no version"),
    (ruby, "a (about 3)", "1"),
    (conda, "a >=1,what?", "1"),
    (maven, "g:a", "1"),
    (maven, "g:a:war (provided)", "1"),
    (maven, "g:a:${a.version}", "1"),
    (maven, "g:a:[1.0,2.0", "1"),
    (maven, f"g:a:[{' ' * 90},{' ' * 90}", "1"),  # these end: there is one way only to read many blanks
    (npm, f"a 1 -{' ' * 1900}1 !", "1.0.0"),
]


@pytest.mark.parametrize(("accepts", "cases"), CASES, ids=["npm", "python", "ruby", "conda", "maven", "helm"])
def test_dependencies_accept_versions_as_their_clients_say(accepts, cases):
    for dependency, good, bad in cases:
        for version in good.split():
            assert accepts(dependency, version) is True, (dependency, version)
        for version in bad.split():
            assert accepts(dependency, version) is False, (dependency, version)


@pytest.mark.parametrize(("accepts", "dependency", "version"), UNKNOWN, ids=range(len(UNKNOWN)))
def test_what_is_no_range_says_nothing(accepts, dependency, version):
    assert accepts(dependency, version) is None
