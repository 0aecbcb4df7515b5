import pytest

from pkgrepo.auth.login.usernames import check_username
from pkgrepo.errors import Invalid


@pytest.mark.parametrize("name", ["bob", "Bob", "b.o_b-2", "0bob", "x" * 32])
def test_names_in_the_grammar_pass_as_they_are(name):
    assert check_username(name) == name


@pytest.mark.parametrize(
    "name", ["", "bo", "x" * 33, "-bob", ".bob", "_bob", "b b", "bob\n", "bób", "bob:", "a/b", "ſss"]
)
def test_others_are_refused(name):
    with pytest.raises(Invalid) as refused:
        check_username(name)
    assert refused.value.pointer == "/username"
