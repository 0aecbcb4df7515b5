import pytest

from pkgrepo.errors import AlreadyExists, Conflict, NotFound
from pkgrepo.model import Action, ProjectRole, SubjectKind, UserKind
from pkgrepo.storage.catalog.people import groups, projects, users
from pkgrepo.storage.catalog.people.grants import permissions_of_user, set_permission


def add(catalog, username, **fields):
    return catalog.do(users.add_user, username=username, now_ms=1000, **fields)


def test_a_user_comes_back_as_added_by_id_name_and_uid(catalog):
    user = add(
        catalog,
        "Alice",
        name="Alice A.",
        email="a@example.org",
        kind=UserKind.SERVICE,
        user_manager=True,
        default_actions=[Action.WRITE, Action.READ],
        password_hash="h",
    )
    assert catalog.peek(users.find_user, user.id) == user
    assert catalog.peek(users.find_user_by_name, "aLiCe") == user
    assert catalog.peek(users.find_user_by_uid, user.uid) == user
    assert catalog.peek(users.get_user, user.id) == user
    assert (user.username, user.key, user.kind, user.user_manager) == ("Alice", "alice", UserKind.SERVICE, True)
    assert user.default_actions == {Action.READ, Action.WRITE}
    assert user.created_at.isoformat() == "1970-01-01T00:00:01+00:00"
    assert user.last_login_at is None
    assert catalog.peek(users.password_hash, user.id) == "h"


def test_absent_users_are_none_or_raise(catalog):
    assert catalog.peek(users.find_user, 5) is None
    assert catalog.peek(users.find_user_by_name, "x") is None
    assert catalog.peek(users.find_user_by_uid, "x") is None
    assert catalog.peek(users.password_hash, 5) == ""
    with pytest.raises(NotFound):
        catalog.peek(users.get_user, 5)


def test_names_are_unique_in_any_case(catalog):
    add(catalog, "alice")
    bob = add(catalog, "bob")
    with pytest.raises(AlreadyExists):
        add(catalog, "ALICE")
    with pytest.raises(AlreadyExists):
        catalog.do(users.update_user, bob.id, now_ms=2, username="Alice")
    assert catalog.do(users.update_user, bob.id, now_ms=2, username="BOB").username == "BOB"


def test_lists_go_on_after_the_last_key_seen(catalog):
    for name in ("carol", "Alice", "bob", "dave"):
        add(catalog, name)
    first = catalog.peek(users.list_users, limit=2)
    assert [user.key for user in first] == ["alice", "bob"]
    assert [user.key for user in catalog.peek(users.list_users, after=(first[-1].key,))] == ["carol", "dave"]


@pytest.mark.parametrize(("query", "found"), [("LIC", ["alice"]), ("example", ["bob"]), ("100%", ["percy"]), ("_", [])])
def test_lists_are_searched_in_name_and_mail(catalog, query, found):
    add(catalog, "alice")
    add(catalog, "bob", email="bob@Example.org")
    add(catalog, "percy", name="The 100% one")
    assert [user.key for user in catalog.peek(users.list_users, search=query)] == found


def test_changes_keep_the_rest(catalog):
    add(catalog, "root", admin=True)
    user = add(catalog, "alice", email="a@example.org", default_actions=[Action.READ])
    changed = catalog.do(users.update_user, user.id, now_ms=2000, name="A", default_actions=frozenset())
    assert (changed.name, changed.email, changed.default_actions) == ("A", "a@example.org", frozenset())
    assert changed.updated_at > user.updated_at


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ({"name": "x"}, False),
        ({"default_actions": frozenset({Action.READ})}, False),
        ({"active": False}, True),
        ({"admin": True}, True),
        ({"user_manager": True}, True),
        ({"system_manager": True}, True),
    ],
)
def test_a_change_of_privileges_invalidates_short_lived_tokens(catalog, changes, ends):
    user = add(catalog, "alice")
    changed = catalog.do(users.update_user, user.id, now_ms=2, **changes)
    assert (changed.generation > user.generation) is ends


def test_a_new_password_invalidates_short_lived_tokens(catalog):
    user = add(catalog, "alice", password_hash="old")
    catalog.do(users.set_password, user.id, "new", now_ms=2)
    assert catalog.peek(users.password_hash, user.id) == "new"
    assert catalog.peek(users.get_user, user.id).generation == user.generation + 1
    with pytest.raises(NotFound):
        catalog.do(users.set_password, 99, "new", now_ms=2)


def test_a_login_is_stored_and_a_rehashed_password_never_replaces_a_new_one(catalog):
    user = add(catalog, "alice", password_hash="old")
    catalog.do(users.record_login, user.id, now_ms=5000, rehashed=("old", "old renewed"))
    assert catalog.peek(users.password_hash, user.id) == "old renewed"
    catalog.do(users.set_password, user.id, "new", now_ms=6000)
    catalog.do(users.record_login, user.id, now_ms=7000, rehashed=("old renewed", "old renewed again"))
    assert catalog.peek(users.password_hash, user.id) == "new"
    assert catalog.peek(users.get_user, user.id).last_login_at.timestamp() == 7


@pytest.mark.parametrize("how", ["remove", "deactivate", "demote"])
def test_the_last_active_admin_stays(catalog, how):
    root = add(catalog, "root", admin=True)
    add(catalog, "asleep", admin=True, active=False)
    act = {
        "remove": lambda: catalog.do(users.remove_user, root.id),
        "deactivate": lambda: catalog.do(users.update_user, root.id, now_ms=2, active=False),
        "demote": lambda: catalog.do(users.update_user, root.id, now_ms=2, admin=False),
    }[how]
    with pytest.raises(Conflict):
        act()
    assert catalog.peek(users.get_user, root.id) == root
    add(catalog, "second", admin=True)
    act()


def test_a_removed_user_leaves_no_grants_and_memberships(catalog):
    user = add(catalog, "alice")
    project = catalog.do(projects.add_project, key="acme", owner_id=user.id, now_ms=1)
    group = catalog.do(groups.add_group, name="crew", now_ms=1)
    catalog.do(groups.add_group_member, group.id, user.id)
    catalog.do(set_permission, 1, SubjectKind.USER, user.id, [Action.READ])
    catalog.do(projects.set_project_member, project.id, SubjectKind.USER, user.id, ProjectRole.OWNER)
    catalog.do(users.remove_user, user.id)
    assert catalog.peek(permissions_of_user, user.id) == []
    assert catalog.peek(projects.roles_of_user, user.id) == {}
    assert catalog.tx.all("SELECT user_id FROM group_member") == []
    with pytest.raises(NotFound):
        catalog.do(users.remove_user, 99)


def test_has_users_tells_whether_there_is_any_user(catalog):
    assert not catalog.peek(users.has_users)
    add(catalog, "alice")
    assert catalog.peek(users.has_users)


def test_changes_of_users_increment_the_serial_and_a_login_does_not(catalog, increments):
    user = add(catalog, "alice")

    assert increments(users.add_user, username="bob", now_ms=1)
    assert increments(users.update_user, user.id, now_ms=2, name="A")
    assert increments(users.set_password, user.id, "x", now_ms=2)
    assert increments(users.bump_generation, user.id)
    assert not increments(users.record_login, user.id, now_ms=3, rehashed=("x", "y"))
    assert increments(users.remove_user, user.id)


def test_the_serial_of_an_empty_catalog_is_0(catalog):
    assert catalog.peek(users.identity_serial) == 0


@pytest.fixture
def crew(catalog):
    return catalog.do(groups.add_group, name="Crew", description="all", now_ms=1000)


def test_a_group_is_found_by_id_and_by_name_in_any_case(catalog, crew):
    assert catalog.peek(groups.find_group, crew.uid) == crew
    assert catalog.peek(groups.find_group, "cREW") == crew
    assert catalog.peek(groups.find_group, "nobody") is None
    assert (crew.name, crew.key, crew.description) == ("Crew", "crew", "all")
    with pytest.raises(AlreadyExists):
        catalog.do(groups.add_group, name="CREW", now_ms=1)


def test_adding_a_member_twice_changes_nothing(catalog, crew, alice):
    for _ in range(2):
        catalog.do(groups.add_group_member, crew.id, alice.id)
    catalog.do(set_permission, 1, SubjectKind.GROUP, crew.id, [Action.READ])
    assert len(catalog.peek(permissions_of_user, alice.id)) == 1


def test_a_users_permissions_are_their_own_and_those_of_their_groups(catalog, crew, alice):
    other = catalog.do(groups.add_group, name="others", now_ms=1)
    catalog.do(groups.add_group_member, crew.id, alice.id)
    catalog.do(set_permission, 1, SubjectKind.USER, alice.id, [Action.WRITE, Action.READ])
    catalog.do(set_permission, 2, SubjectKind.GROUP, crew.id, [])
    catalog.do(set_permission, 2, SubjectKind.GROUP, other.id, [Action.READ])
    found = {
        (each.repository_id, each.subject_kind, each.subject_name): each.actions
        for each in catalog.peek(permissions_of_user, alice.id)
    }
    assert found == {
        (1, SubjectKind.USER, "alice"): {Action.READ, Action.WRITE},
        (2, SubjectKind.GROUP, "Crew"): frozenset(),
    }


def test_a_user_and_a_group_of_one_number_are_kept_apart(catalog, crew, alice):
    assert crew.id == alice.id
    catalog.do(set_permission, 1, SubjectKind.GROUP, crew.id, [Action.READ])
    assert catalog.peek(permissions_of_user, alice.id) == []


def test_setting_a_permission_again_replaces_it_and_none_removes_it(catalog, alice):
    for actions in ([Action.READ], [Action.WRITE]):
        catalog.do(set_permission, 1, SubjectKind.USER, alice.id, actions)
    (grant,) = catalog.peek(permissions_of_user, alice.id)
    assert (grant.actions, grant.subject_uid) == ({Action.WRITE}, alice.uid)
    catalog.do(set_permission, 1, SubjectKind.USER, alice.id, None)
    assert catalog.peek(permissions_of_user, alice.id) == []


def test_every_change_increments_the_serial(catalog, crew, alice):
    def increments(command, *args):
        before = catalog.peek(users.identity_serial)
        catalog.do(command, *args)
        return catalog.peek(users.identity_serial) > before

    assert increments(groups.add_group_member, crew.id, alice.id)
    assert increments(set_permission, 1, SubjectKind.USER, alice.id, [])
    assert increments(set_permission, 1, SubjectKind.USER, alice.id, None)
