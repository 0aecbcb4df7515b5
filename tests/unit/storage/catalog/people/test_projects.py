import pytest

from pkgrepo.errors import AlreadyExists, NotFound
from pkgrepo.model import ProjectRole, SubjectKind, Visibility
from pkgrepo.storage.catalog.people import groups, projects, users


@pytest.fixture
def acme(catalog, alice):
    return catalog.do(projects.add_project, key="Acme", owner_id=alice.id, now_ms=1000)


def test_a_project_is_found_by_id_and_by_key_in_any_case(catalog, acme):
    assert catalog.peek(projects.find_project, acme.uid) == acme
    assert catalog.peek(projects.find_project, "ACME") == acme
    assert catalog.peek(projects.find_project, "zinc") is None
    assert catalog.peek(projects.get_project, acme.id) == acme
    assert (acme.key, acme.name, acme.visibility) == ("acme", "Acme", Visibility.PRIVATE)
    with pytest.raises(AlreadyExists):
        catalog.do(projects.add_project, key="ACME", now_ms=1)


def test_projects_are_listed_by_key_in_pages(catalog, acme):
    catalog.do(projects.add_project, key="zinc", now_ms=1)
    assert [each.key for each in catalog.peek(projects.list_projects, limit=1)] == ["acme"]
    assert [each.key for each in catalog.peek(projects.list_projects, after=("acme",))] == ["zinc"]


def test_changes_keep_the_rest(catalog, acme):
    changed = catalog.do(projects.update_project, acme.id, now_ms=2000, visibility=Visibility.PUBLIC)
    assert (changed.name, changed.visibility) == ("Acme", Visibility.PUBLIC)


def test_the_first_owner_is_a_member_and_members_are_replaced_and_removed(catalog, acme, alice):
    (member,) = catalog.peek(projects.list_project_members, acme.id)
    assert (member.role, member.subject_name, member.subject_uid) == (ProjectRole.OWNER, "alice", alice.uid)
    catalog.do(projects.set_project_member, acme.id, SubjectKind.USER, alice.id, ProjectRole.GUEST)
    assert [each.role for each in catalog.peek(projects.list_project_members, acme.id)] == [ProjectRole.GUEST]
    catalog.do(projects.set_project_member, acme.id, SubjectKind.USER, alice.id, None)
    assert catalog.peek(projects.list_project_members, acme.id) == []


@pytest.mark.parametrize(
    ("own", "of_group", "highest"), [("guest", "developer", "developer"), ("owner", "guest", "owner")]
)
def test_the_highest_of_own_role_and_groups_roles_counts(catalog, acme, alice, own, of_group, highest):
    crew = catalog.do(groups.add_group, name="crew", now_ms=1)
    catalog.do(groups.add_group_member, crew.id, alice.id)
    catalog.do(projects.set_project_member, acme.id, SubjectKind.USER, alice.id, ProjectRole(own))
    catalog.do(projects.set_project_member, acme.id, SubjectKind.GROUP, crew.id, ProjectRole(of_group))
    assert catalog.peek(projects.roles_of_user, alice.id) == {acme.id: ProjectRole(highest)}


def test_a_pattern_is_bound_to_one_project_in_each_repository(catalog, acme):
    zinc = catalog.do(projects.add_project, key="zinc", now_ms=1)
    for _ in range(2):
        catalog.do(projects.bind_names, 1, "acme-*", acme.id)
    with pytest.raises(AlreadyExists):
        catalog.do(projects.bind_names, 1, "acme-*", zinc.id)
    catalog.do(projects.bind_names, 2, "acme-*", zinc.id)
    assert [each.repository_id for each in catalog.peek(projects.list_bindings, project_id=acme.id)] == [1]
    assert [each.project_id for each in catalog.peek(projects.list_bindings, repository_id=2)] == [zinc.id]
    assert catalog.peek(projects.list_bindings, project_id=acme.id, repository_id=2) == []
    catalog.do(projects.unbind_names, 1, "acme-*")
    assert catalog.peek(projects.list_bindings, repository_id=1) == []


def test_the_first_bound_candidate_decides_before_the_project_key(catalog, acme):
    zinc = catalog.do(projects.add_project, key="zinc", now_ms=1)
    catalog.do(projects.bind_names, 1, "com.acme", acme.id)
    catalog.do(projects.bind_names, 1, "com.acme.x", zinc.id)

    def owner(*candidates, repository_id=1, key=None):
        found = catalog.peek(projects.owning_project, repository_id, candidates, key)
        return found and found.key

    assert owner("com.acme.x.y", "com.acme.x", "com.acme", "com") == "zinc"
    assert owner("com.acme.z", "com.acme", "com") == "acme"
    assert owner("com.acmex", "com") is None
    assert owner("com.acme", repository_id=2) is None
    assert owner("com.acmex", key="Zinc") == "zinc"
    assert owner("com.acme", key="zinc") == "acme"
    assert owner("com.acmex", key="nothing") is None


def test_a_claim_adds_a_project_once(catalog, alice):
    bob = catalog.do(users.add_user, username="bob", now_ms=1)
    first = catalog.do(projects.claim_names, 1, pattern="x", project_key="k", owner_id=alice.id, now_ms=1)
    second = catalog.do(projects.claim_names, 1, pattern="x", project_key="k", owner_id=bob.id, now_ms=1)
    assert first == second
    assert catalog.peek(projects.roles_of_user, bob.id) == {}
    with pytest.raises(AlreadyExists):
        catalog.do(projects.claim_names, 1, pattern="y", project_key="K", owner_id=bob.id, now_ms=1)


def test_the_patterns_of_a_removed_project_can_be_bound_again(catalog, acme, alice):
    catalog.do(projects.bind_names, 1, "acme-*", acme.id)
    catalog.do(projects.remove_project, acme.id)
    assert catalog.peek(projects.list_bindings) == []
    assert catalog.peek(projects.roles_of_user, alice.id) == {}
    with pytest.raises(NotFound):
        catalog.do(projects.remove_project, acme.id)
    with pytest.raises(NotFound):
        catalog.peek(projects.get_project, acme.id)


def test_every_change_increments_the_serial(catalog, increments, acme, alice):
    assert increments(projects.set_project_member, acme.id, SubjectKind.USER, alice.id, ProjectRole.GUEST)
    assert increments(projects.bind_names, 1, "a", acme.id)
    assert increments(projects.unbind_names, 1, "a")
    assert increments(projects.update_project, acme.id, now_ms=1, name="n")
    assert increments(projects.remove_project, acme.id)
