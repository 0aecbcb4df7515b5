"""The requirements of a wheel as dependencies of a conda package."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.wheels.requirements import conda_name, depends_on


@pytest.mark.parametrize(
    ("requirement", "dependency"),
    [
        ("requests", "requests"),
        ("Requests[security] >= 2 , < 3", "requests <3,>=2"),
        ("a~=2.2.1", "a >=2.2.1,2.2.*"),
        ("a~=1!2.2.post3", "a >=1!2.2.post3,1!2.*"),
        ("a==2.2.*", "a 2.2.*"),
        ("a!=2.2.*", "a !=2.2.*"),
        ("a===2.2", "a ==2.2"),
        ("a==1.0+local", "a ==1.0+local"),
        ("Zope.Interface", "zope.interface"),
        ("torch (>=2)", "pytorch >=2"),
        ("a; python_version >= '3.8'", "a"),
        ("a; python_version < '4'", "a"),
        ("a; python_full_version >= '3.8.0'", "a"),
        ("a; python_version < '3.8'", None),
        ("a; extra == 'test'", None),
        ("a @ https://example.com/a.whl ; extra == 'test'", None),
        ("a; extra == 'test' and sys_platform == 'win32'", None),
        ("a; python_version < '3.8' and sys_platform == 'win32'", None),
        ("a; sys_platform == 'win32' or sys_platform != 'win32'", "a"),
        ("a; platform_python_implementation != 'PyPy'", "a"),
        ("a; platform_system == 'Haiku'", None),
    ],
)
def test_a_requirement_that_holds_everywhere_or_nowhere_is_decided(requirement, dependency):
    found = depends_on(">=3.8", [requirement])
    assert found == ["python >=3.8", *([] if dependency is None else [dependency])]


@pytest.mark.parametrize(
    "requirement",
    [
        "tomli; python_version < '3.11'",
        "a; python_full_version < '3.9.7'",
        "colorama; sys_platform == 'win32'",
        "a; os_name == 'nt'",
        "a; platform_machine == 'x86_64'",
        "a; platform_release >= '5'",
        "a; implementation_version < '3.9'",
        "a @ https://example.com/a.whl",
        "a b c",
        "a; nonsense == 1",
        "a" * 3000,
        f"a; {'(' * 900}python_version > '3'{')' * 900}",
        "",
    ],
)
def test_other_requirements_are_refused_with_a_reason(requirement):
    with pytest.raises(Invalid) as refused:
        depends_on(">=3.8", ["fine", requirement])
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("requires", "python"),
    [
        (None, "python >=3"),
        ("", "python >=3"),
        (">=3.8,!=3.9.*,<4", "python !=3.9.*,<4,>=3.8"),
        ("~=3.8", "python >=3.8,3.*"),
        (">=2.7, !=3.0.*", "python !=3.0.*,>=2.7"),
    ],
)
def test_the_versions_of_python_are_a_dependency(requires, python):
    assert depends_on(requires, []) == [python]


@pytest.mark.parametrize("requires", ["<3", ">=3.99", "nonsense", ">=" + "1." * 2000 + "1"])
def test_wheels_for_no_python_3_are_refused(requires):
    with pytest.raises(Invalid):
        depends_on(requires, [])


def test_a_dependency_is_named_once_and_too_many_are_refused():
    assert depends_on(">=3.8", ["a", "A", "a>=1"]) == ["python >=3.8", "a", "a >=1"]
    with pytest.raises(Invalid):
        depends_on(None, [f"a{n}" for n in range(501)])


def test_names_are_normal_names_but_for_some():
    assert [conda_name(each) for each in ("My__Pkg", "build", "jaraco.text")] == [
        "my-pkg",
        "python-build",
        "jaraco.text",
    ]
