import pytest

from pkgrepo.errors import AlreadyExists
from pkgrepo.model import Action, SubjectKind
from pkgrepo.storage.catalog.people import grants, users


@pytest.fixture
def crew(catalog):
    return catalog.do(grants.add_group, name="Crew", description="all", now_ms=1000)


def test_a_group_is_found_by_id_and_by_name_in_any_case(catalog, crew):
    assert catalog.peek(grants.find_group, crew.uid) == crew
    assert catalog.peek(grants.find_group, "cREW") == crew
    assert catalog.peek(grants.find_group, "nobody") is None
    assert (crew.name, crew.key, crew.description) == ("Crew", "crew", "all")
    with pytest.raises(AlreadyExists):
        catalog.do(grants.add_group, name="CREW", now_ms=1)


def test_adding_a_member_twice_changes_nothing(catalog, crew, alice):
    for _ in range(2):
        catalog.do(grants.add_group_member, crew.id, alice.id)
    catalog.do(grants.set_permission, 1, SubjectKind.GROUP, crew.id, [Action.READ])
    assert len(catalog.peek(grants.permissions_of_user, alice.id)) == 1


def test_a_users_permissions_are_their_own_and_those_of_their_groups(catalog, crew, alice):
    other = catalog.do(grants.add_group, name="others", now_ms=1)
    catalog.do(grants.add_group_member, crew.id, alice.id)
    catalog.do(grants.set_permission, 1, SubjectKind.USER, alice.id, [Action.WRITE, Action.READ])
    catalog.do(grants.set_permission, 2, SubjectKind.GROUP, crew.id, [])
    catalog.do(grants.set_permission, 2, SubjectKind.GROUP, other.id, [Action.READ])
    found = {
        (each.repository_id, each.subject_kind, each.subject_name): each.actions
        for each in catalog.peek(grants.permissions_of_user, alice.id)
    }
    assert found == {
        (1, SubjectKind.USER, "alice"): {Action.READ, Action.WRITE},
        (2, SubjectKind.GROUP, "Crew"): frozenset(),
    }


def test_a_user_and_a_group_of_one_number_are_kept_apart(catalog, crew, alice):
    assert crew.id == alice.id
    catalog.do(grants.set_permission, 1, SubjectKind.GROUP, crew.id, [Action.READ])
    assert catalog.peek(grants.permissions_of_user, alice.id) == []


def test_setting_a_permission_again_replaces_it_and_none_removes_it(catalog, alice):
    for actions in ([Action.READ], [Action.WRITE]):
        catalog.do(grants.set_permission, 1, SubjectKind.USER, alice.id, actions)
    (grant,) = catalog.peek(grants.permissions_of_user, alice.id)
    assert (grant.actions, grant.subject_uid) == ({Action.WRITE}, alice.uid)
    catalog.do(grants.set_permission, 1, SubjectKind.USER, alice.id, None)
    assert catalog.peek(grants.permissions_of_user, alice.id) == []


def test_every_change_increments_the_serial(catalog, crew, alice):
    def increments(command, *args):
        before = catalog.peek(users.identity_serial)
        catalog.do(command, *args)
        return catalog.peek(users.identity_serial) > before

    assert increments(grants.add_group_member, crew.id, alice.id)
    assert increments(grants.set_permission, 1, SubjectKind.USER, alice.id, [])
    assert increments(grants.set_permission, 1, SubjectKind.USER, alice.id, None)
