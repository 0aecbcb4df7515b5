import pytest

from pkgrepo.errors import AlreadyExists, NotFound
from pkgrepo.model import Action, ProjectRole, SubjectKind
from pkgrepo.storage.catalog.people import grants, identity, projects
from tests.support.catalog import MemoryCatalog, add_repository


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    add_repository(catalog, 1)
    add_repository(catalog, 2)
    return catalog


@pytest.fixture
def alice(catalog):
    return catalog.do(identity.add_user, username="alice", now_ms=1)


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


def test_groups_are_listed_by_key_in_pages(catalog, crew):
    catalog.do(grants.add_group, name="apes", now_ms=1)
    assert [each.key for each in catalog.peek(grants.list_groups, limit=1)] == ["apes"]
    assert [each.key for each in catalog.peek(grants.list_groups, after="apes")] == ["crew"]


def test_members_come_and_go_and_are_listed_in_pages(catalog, crew, alice):
    bob = catalog.do(identity.add_user, username="bob", now_ms=1)
    for user in (alice, bob, alice):
        catalog.do(grants.add_group_member, crew.id, user.id)
    assert catalog.peek(grants.list_group_members, crew.id) == [alice, bob]
    assert catalog.peek(grants.list_group_members, crew.id, after=alice.id) == [bob]
    assert catalog.peek(grants.groups_of_user, alice.id) == [crew]
    catalog.do(grants.remove_group_member, crew.id, alice.id)
    assert catalog.peek(grants.groups_of_user, alice.id) == []


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


def test_setting_a_permission_again_replaces_it_and_none_takes_it_back(catalog, alice):
    for actions in ([Action.READ], [Action.WRITE]):
        catalog.do(grants.set_permission, 1, SubjectKind.USER, alice.id, actions)
    (grant,) = catalog.peek(grants.permissions_of_repository, 1)
    assert (grant.actions, grant.subject_uid) == ({Action.WRITE}, alice.uid)
    catalog.do(grants.set_permission, 1, SubjectKind.USER, alice.id, None)
    assert catalog.peek(grants.permissions_of_repository, 1) == []


def test_a_repositorys_permissions_name_users_first(catalog, crew, alice):
    catalog.do(grants.set_permission, 1, SubjectKind.GROUP, crew.id, [Action.READ])
    catalog.do(grants.set_permission, 1, SubjectKind.USER, alice.id, [Action.READ])
    names = [each.subject_name for each in catalog.peek(grants.permissions_of_repository, 1)]
    assert names == ["alice", "Crew"]


def test_a_removed_group_leaves_nothing_behind(catalog, crew, alice):
    catalog.do(grants.add_group_member, crew.id, alice.id)
    catalog.do(grants.set_permission, 1, SubjectKind.GROUP, crew.id, [Action.READ])
    project = catalog.do(projects.add_project, key="acme", now_ms=1)
    catalog.do(projects.set_project_member, project.id, SubjectKind.GROUP, crew.id, ProjectRole.OWNER)
    catalog.do(grants.remove_group, crew.id)
    assert catalog.peek(grants.permissions_of_repository, 1) == []
    assert catalog.peek(projects.list_project_members, project.id) == []
    assert catalog.peek(grants.groups_of_user, alice.id) == []
    with pytest.raises(NotFound):
        catalog.do(grants.remove_group, crew.id)


def test_every_change_moves_the_serial(catalog, crew, alice):
    def moves(command, *args):
        before = catalog.peek(identity.identity_serial)
        catalog.do(command, *args)
        return catalog.peek(identity.identity_serial) > before

    assert moves(grants.add_group_member, crew.id, alice.id)
    assert moves(grants.remove_group_member, crew.id, alice.id)
    assert moves(grants.set_permission, 1, SubjectKind.USER, alice.id, [])
    assert moves(grants.set_permission, 1, SubjectKind.USER, alice.id, None)
    assert moves(grants.remove_group, crew.id)
