from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from attrs import evolve
from zope.interface.verify import verifyObject

from pkgrepo.auth.login.identities import identity_of
from pkgrepo.auth.permissions.admission import admit_approver
from pkgrepo.auth.permissions.authorizer import CHANGES, Authorizer
from pkgrepo.auth.permissions.ownership import claim_packages
from pkgrepo.auth.permissions.rules import NO_REPOSITORY
from pkgrepo.auth.tokens.limits import NOWHERE, SERVER_SCOPES
from pkgrepo.errors import Forbidden, NotFound
from pkgrepo.interfaces import IAuthorizer
from pkgrepo.model import (
    ANONYMOUS,
    Action,
    Actor,
    ProjectRole,
    RepositoryScope,
    SubjectKind,
    TokenLimits,
    Visibility,
)
from pkgrepo.storage.catalog.people.grants import set_permission
from pkgrepo.storage.catalog.people.groups import add_group, add_group_member
from pkgrepo.storage.catalog.people.projects import add_project, bind_names, set_project_member
from pkgrepo.storage.catalog.people.users import find_user, remove_user, update_user
from pkgrepo.storage.catalog.server.purge import purge_repository
from pkgrepo.storage.catalog.server.repositories import remove_repository
from tests.support.auth import START
from tests.support.repositories import now

READ, WRITE = Action.READ, Action.WRITE


@pytest.fixture
def alice(scene):
    return identity_of(scene.user("alice"), via="password")


def grant(scene, repository, identity, actions):
    scene.catalog.do(set_permission, repository.id, SubjectKind.USER, identity.user_id, actions)


def ruled(scene, number=1, **rules):
    return evolve(scene.repository(number), config={"push_rules": {"must_be_project_member": True, **rules}})


def is_member(scene, identity, repository, package):
    where = evolve(repository, config={"push_rules": {"must_be_project_member": True}})
    try:
        now(scene.authorizer.check_project_member(identity, where, package))
    except Forbidden:
        return False
    return True


def claim(scene, repository, identity):
    scene.catalog.do(claim_packages, repository, ["acme-x"], Actor.of(identity), 1)


def test_the_interface_is_kept(scene):
    assert verifyObject(IAuthorizer, scene.authorizer)


def test_a_grant_is_felt_at_once_and_so_is_its_end(scene, alice):
    repository = scene.repository()
    assert not now(scene.authorizer.may(alice, READ, repository))
    grant(scene, repository, alice, [READ])
    assert now(scene.authorizer.may(alice, READ, repository))
    grant(scene, repository, alice, None)
    assert not now(scene.authorizer.may(alice, READ, repository))


def test_group_membership_and_project_roles_count_from_the_catalog(scene, alice):
    repository, other = scene.repository(1), scene.repository(2)
    group = scene.catalog.do(add_group, name="crew", now_ms=1)
    scene.catalog.do(set_permission, other.id, SubjectKind.GROUP, group.id, [READ])
    project = scene.catalog.do(add_project, key="acme", now_ms=1)
    scene.catalog.do(bind_names, repository.id, "acme-*", project.id)
    scene.catalog.do(set_project_member, project.id, SubjectKind.GROUP, group.id, ProjectRole.DEVELOPER)
    assert not now(scene.authorizer.may(alice, WRITE, repository, "acme-x"))
    scene.catalog.do(add_group_member, group.id, alice.user_id)
    assert now(scene.authorizer.may(alice, WRITE, repository, "acme-x"))
    assert not now(scene.authorizer.may(alice, WRITE, repository, "zinc"))
    assert now(scene.authorizer.may(alice, READ, other))


def test_the_flags_of_the_catalog_count_and_not_those_of_the_moment_of_login(scene):
    user = scene.user("root", admin=True)
    scene.user("other root", admin=True)
    identity, repository = identity_of(user, via="password"), scene.repository()
    assert now(scene.authorizer.may(identity, Action.ADMIN, repository))
    scene.catalog.do(update_user, user.id, now_ms=1, admin=False)
    assert identity.admin
    assert not now(scene.authorizer.may(identity, READ, repository))
    scene.catalog.do(remove_user, user.id)
    assert not now(scene.authorizer.may(identity, READ, evolve(repository, visibility=Visibility.PUBLIC)))


def test_a_new_configuration_of_a_repository_is_judged_anew(scene):
    repository = scene.repository(visibility=Visibility.PUBLIC)
    assert now(scene.authorizer.may(ANONYMOUS, READ, repository))
    assert not now(scene.authorizer.may(ANONYMOUS, READ, evolve(repository, visibility=Visibility.PRIVATE)))
    assert not now(scene.authorizer.may(ANONYMOUS, READ, evolve(repository, settings={"auth": {"enabled": True}})))
    assert now(scene.authorizer.may(ANONYMOUS, READ, repository))


def test_the_servers_switch_works_at_once(scene):
    repository = scene.repository(visibility=Visibility.PUBLIC)
    assert now(scene.authorizer.may(ANONYMOUS, READ, repository))
    scene.authorizer.anonymous = False
    assert not now(scene.authorizer.may(ANONYMOUS, READ, repository))
    assert not scene.authorizer.anonymous


def test_limits_end_in_the_middle_of_what_is_remembered(scene, alice):
    from datetime import UTC, datetime

    repository = scene.repository()
    grant(scene, repository, alice, [READ])
    end = datetime.fromtimestamp(scene.clock() + 10, UTC)
    identity = evolve(alice, limits=TokenLimits(scopes=SERVER_SCOPES, expires_at=end))
    assert now(scene.authorizer.may(identity, READ, repository))
    assert now(scene.authorizer.may_use(identity, "api:read"))
    scene.clock.advance(10)
    assert not now(scene.authorizer.may(identity, READ, repository))
    assert not now(scene.authorizer.may_use(identity, "api:read"))
    assert "expired" in now(scene.authorizer.explain(identity, READ, repository))


def test_what_is_remembered_asks_the_catalog_nothing(scene, alice):
    repository = scene.repository()
    now(scene.authorizer.may(alice, READ, repository, "x"))
    before = scene.catalog.tx.statements
    for _ in range(100):
        now(scene.authorizer.may(alice, READ, repository, "x"))
    assert scene.catalog.tx.statements == before


def test_identities_that_came_and_went_are_never_mistaken_for_each_other(scene, alice):
    # decisions are found by identity objects; those must stay alive as long as their decisions do
    repository = scene.repository()
    grant(scene, repository, alice, [READ])
    for count in range(2000):
        narrowed = count % 2 == 0
        scopes = (RepositoryScope("main/other", frozenset({READ})),) if narrowed else ()
        identity = evolve(alice, limits=TokenLimits(repositories=scopes))
        assert now(scene.authorizer.may(identity, READ, repository)) is not narrowed


def test_decisions_about_names_that_no_package_has_are_not_remembered(scene, alice):
    repository = scene.repository()
    grant(scene, repository, alice, [READ])
    assert now(scene.authorizer.may(alice, READ, repository, "a" * 30_000))
    assert not scene.authorizer._decisions
    assert now(scene.authorizer.may(alice, READ, repository, "a" * 200))
    assert len(scene.authorizer._decisions) == 1


def test_memory_of_decisions_is_bounded(scene, alice):
    authorizer = Authorizer(scene.catalog, clock=scene.clock, most_cached=10)
    repository = scene.repository()
    for count in range(50):
        now(authorizer.may(alice, READ, repository, f"p{count}"))
    assert len(authorizer._decisions) <= 10


@pytest.mark.parametrize(
    ("visibility", "actions", "seen"),
    [
        (Visibility.PUBLIC, None, True),
        (Visibility.PUBLIC, [], False),
        (Visibility.PRIVATE, None, False),
        (Visibility.PRIVATE, [READ], True),
        (Visibility.HIDDEN, None, False),
        (Visibility.HIDDEN, [READ], False),
        (Visibility.HIDDEN, [READ, Action.EDIT], True),
    ],
)
def test_lists_show_what_may_be_read_and_hidden_ones_to_their_editors(scene, alice, visibility, actions, seen):
    repository = scene.repository(visibility=visibility)
    grant(scene, repository, alice, actions)
    assert now(scene.authorizer.may_see(alice, repository)) is seen


@pytest.mark.parametrize(
    ("flags", "scopes"),
    [
        ({}, {"api:read", "api:write"}),
        ({"user_manager": True}, {"api:read", "api:write", "users"}),
        ({"system_manager": True}, {"api:read", "api:write", "system", "metrics"}),
        ({"admin": True}, SERVER_SCOPES),
        ({"admin": True, "active": False}, set()),
    ],
)
def test_server_scopes_follow_the_flags(scene, flags, scopes):
    identity = identity_of(scene.user("bob", **flags), via="password")
    assert {scope for scope in SERVER_SCOPES if now(scene.authorizer.may_use(identity, scope))} == scopes
    narrowed = evolve(identity, limits=TokenLimits(scopes=frozenset({"users", "api:read"})))
    allowed = {scope for scope in SERVER_SCOPES if now(scene.authorizer.may_use(narrowed, scope))}
    assert allowed == scopes & {"users", "api:read"}
    plain_token = evolve(identity, limits=TokenLimits())
    assert not any(now(scene.authorizer.may_use(plain_token, scope)) for scope in SERVER_SCOPES)


def test_nobody_uses_the_server_beyond_repositories(scene):
    assert not any(now(scene.authorizer.may_use(ANONYMOUS, scope)) for scope in SERVER_SCOPES)


def test_a_refusal_names_who_what_and_the_rule(scene, alice):
    repository = scene.repository()
    grant(scene, repository, alice, [READ])
    said = now(scene.authorizer.explain(alice, WRITE, repository, "acme-x"))
    assert said == "'alice' may not publish 'acme-x' in main/r1: the user's grant in this repository is for read"
    assert "auth.enabled" in now(
        scene.authorizer.explain(
            ANONYMOUS, READ, evolve(repository, visibility=Visibility.PUBLIC, settings={"auth": {"enabled": True}})
        )
    )


def test_a_refusal_names_no_rule_of_a_repository_that_was_removed(scene, alice):
    repository = scene.repository()
    scene.catalog.do(remove_repository, repository.id, now_ms=1, purge=True)
    while scene.catalog.do(purge_repository, repository.id):
        pass
    with pytest.raises(NotFound, match="main/r1"):
        now(scene.authorizer.explain(alice, WRITE, repository, "acme-x"))
    with pytest.raises(NotFound, match="main/r1"):
        now(
            scene.authorizer.check_project_member(
                alice, evolve(repository, config={"push_rules": {"must_be_project_member": True}}), "acme-x"
            )
        )


@pytest.mark.parametrize("role", [None, *ProjectRole])
def test_members_are_developers_and_above(scene, alice, role):
    repository = ruled(scene)
    project = scene.catalog.do(add_project, key="acme", now_ms=1)
    scene.catalog.do(bind_names, repository.id, "acme-*", project.id)
    scene.catalog.do(set_project_member, project.id, SubjectKind.USER, alice.user_id, role)
    member = role in {ProjectRole.DEVELOPER, ProjectRole.MAINTAINER, ProjectRole.OWNER}
    assert is_member(scene, alice, repository, "acme-x") is member
    assert not is_member(scene, alice, repository, "zinc")
    for action in (WRITE, Action.OVERWRITE, Action.DELETE):
        if member:
            now(scene.authorizer.check_push_rules(alice, action, repository, "acme-x"))
        else:
            with pytest.raises(Forbidden, match="project acme"):
                now(scene.authorizer.check_push_rules(alice, action, repository, "acme-x"))


def test_admins_are_members_everywhere_and_nobody_is_nowhere(scene):
    repository = scene.repository()
    admin = identity_of(scene.user("root", admin=True), via="password")
    assert is_member(scene, admin, repository, "x")
    assert not is_member(scene, ANONYMOUS, repository, "x")


def test_a_container_image_belongs_to_the_project_that_its_name_begins_with(scene, alice):
    repository = scene.repository(format="docker")
    scene.catalog.do(add_project, key="acme", owner_id=alice.user_id, now_ms=1)
    assert is_member(scene, alice, repository, "acme/web")
    assert not is_member(scene, alice, repository, "other/web")


def test_a_package_without_owner_may_be_published_where_the_setting_says_so_but_not_removed(scene, alice):
    repository, open_ = ruled(scene), ruled(scene, 2, auto_create_projects=True)
    for action, where in ((WRITE, repository), (Action.DELETE, repository), (Action.DELETE, open_)):
        with pytest.raises(Forbidden, match="no project owns 'acme-x'"):
            now(scene.authorizer.check_push_rules(alice, action, where, "acme-x"))
    now(scene.authorizer.check_push_rules(alice, WRITE, open_, "acme-x"))
    claim(scene, open_, alice)
    assert now(scene.authorizer.owning_project(open_, "acme-x")).key == "main.r2:acme-x"
    now(scene.authorizer.check_push_rules(alice, Action.DELETE, open_, "acme-x"))
    bob = identity_of(scene.user("bob"), via="password")
    with pytest.raises(Forbidden, match="only members of project"):
        now(scene.authorizer.check_push_rules(bob, WRITE, open_, "acme-x"))


@pytest.mark.parametrize("rules", [{}, {"must_be_project_member": False}, {"auto_create_projects": True}])
def test_without_the_rule_nothing_is_refused_or_claimed(scene, alice, rules):
    repository = evolve(scene.repository(), config={"push_rules": rules})
    now(scene.authorizer.check_push_rules(alice, WRITE, repository, "acme-x"))
    claim(scene, repository, alice)
    assert now(scene.authorizer.owning_project(repository, "acme-x")) is None


def test_who_needs_no_project_claims_none(scene):
    repository = ruled(scene, auto_create_projects=True)
    admin = identity_of(scene.user("root", admin=True), via="password")
    for identity in (admin, ANONYMOUS):
        claim(scene, repository, identity)
    claim(scene, ruled(scene, 2), admin)
    assert now(scene.authorizer.owning_project(repository, "acme-x")) is None


def test_a_pusher_who_claimed_a_package_in_another_request_has_nothing_to_claim(scene, alice):
    repository = ruled(scene, auto_create_projects=True)
    claim(scene, repository, alice)
    project = now(scene.authorizer.owning_project(repository, "acme-x"))
    claim(scene, repository, alice)
    assert now(scene.authorizer.owning_project(repository, "acme-x")) == project


def test_of_two_first_pushers_one_becomes_the_owner(scene, alice):
    repository = ruled(scene, auto_create_projects=True)
    bob = identity_of(scene.user("bob"), via="password")
    claim(scene, repository, alice)
    with pytest.raises(Forbidden, match="a moment ago"):
        claim(scene, repository, bob)
    assert not is_member(scene, bob, repository, "acme-x")


def test_a_package_of_the_same_name_elsewhere_is_claimed_apart(scene, alice):
    first, second = (ruled(scene, number, auto_create_projects=True) for number in (1, 2))
    bob = identity_of(scene.user("bob"), via="password")
    claim(scene, first, alice)
    claim(scene, second, bob)
    assert is_member(scene, bob, second, "acme-x")
    assert not is_member(scene, bob, first, "acme-x")


@pytest.mark.parametrize(
    ("folder", "pattern"),
    [
        ("com/acme/app/1.0/", "com.acme:app"),
        ("com/acme/app/1.0/", "com.acme:*"),
        ("com/acme/app/1.0/", "com.acme"),
        ("com/acme/app/", "com"),
        ("com/", "com"),
        ("com/acme/app/", "com.acme.app"),
    ],
)
def test_a_folder_of_a_java_repository_belongs_to_the_owner_of_what_it_is_of(scene, alice, folder, pattern):
    repository = evolve(scene.repository(format="maven"), config={"push_rules": {"must_be_project_member": True}})
    project = scene.catalog.do(add_project, key="acme", now_ms=1)
    scene.catalog.do(bind_names, repository.id, pattern, project.id)
    with pytest.raises(Forbidden, match="project acme"):
        now(scene.authorizer.check_project_member(alice, repository, folder, unowned_ok=True))
    for other in ("com2/acme/app/", "org/", "acme/com/app/"):
        now(scene.authorizer.check_project_member(alice, repository, other, unowned_ok=True))


def test_who_approves_plain_files_may_push_them(scene, alice):
    repository = scene.repository(format="maven")
    grant(scene, repository, alice, [*Action])
    project = scene.catalog.do(add_project, key="acme", now_ms=1)
    scene.catalog.do(bind_names, repository.id, "com.acme:*", project.id)

    def approve(rule, path):
        where = evolve(repository, config={"push_rules": {rule: True}})
        now(admit_approver(scene.authorizer, alice, where, [], [path], Actor.of(alice))).check(where, f"/{path}")

    approve("must_be_project_member", "org/other/notes.txt")
    for rule, why in (("must_be_project_member", "project acme"), ("must_use_auth_token_for_push", "an access token")):
        with pytest.raises(Forbidden, match=why):
            approve(rule, "com/acme/app/notes.txt")


def test_a_password_does_not_push_where_tokens_must(scene, alice):
    repository = evolve(scene.repository(), config={"push_rules": {"must_use_auth_token_for_push": True}})
    for identity in (alice, evolve(alice, via="bearer"), evolve(alice, via="token", token_id=77)):
        for action in (WRITE, Action.DELETE):
            with pytest.raises(Forbidden, match="need an access token"):
                now(scene.authorizer.check_push_rules(identity, action, repository))
    now(scene.authorizer.check_push_rules(evolve(alice, via="session"), Action.DELETE, repository))


@pytest.mark.parametrize(("action", "needs"), [(WRITE, True), (Action.OVERWRITE, True), (Action.DELETE, False)])
def test_an_approval_is_needed_for_all_that_makes_content_visible(scene, alice, action, needs):
    repository = evolve(scene.repository(), config={"push_rules": {"requires_approval": True}})
    grant(scene, repository, alice, [READ, WRITE, Action.OVERWRITE, Action.DELETE])
    with pytest.raises(Forbidden, match="by an approval") if needs else nullcontext():
        now(scene.authorizer.check_push_rules(alice, action, repository, "acme-x"))
    grant(scene, repository, alice, [READ, Action.ADMIN])
    now(scene.authorizer.check_push_rules(alice, action, repository, "acme-x"))


@pytest.mark.parametrize("missing", [None, WRITE, Action.OVERWRITE, Action.DELETE])
def test_a_token_stands_for_its_person_if_it_publishes_replaces_and_deletes(scene, missing):
    repository = scene.repository()
    actions = frozenset({READ, WRITE, Action.OVERWRITE, Action.DELETE} - {missing})
    limits = TokenLimits(repositories=(RepositoryScope(repository.path, actions),))
    chief = scene.user("chief", admin=True)
    _, token = scene.token(chief, limits)
    identity = identity_of(chief, via="token", token=token)
    assert now(scene.authorizer.person_may(identity, Action.ADMIN, repository, "acme-x")) is (missing is None)


def test_people_with_rights_are_known_to_administrators_and_members_of_a_project_to_each_other(scene, alice):
    """Strangers, and tokens that are for less, learn nothing."""
    repository, other = scene.repository(1), scene.repository(2)
    people = ("admin", "boss", "crew", "dev", "of crew", "grantee", "elsewhere", "stranger", "gone")
    who = {name: identity_of(scene.user(name, admin=name == "admin"), via="password") for name in people}
    scene.catalog.do(update_user, who["boss"].user_id, now_ms=1, default_actions=frozenset({READ}))
    grant(scene, repository, alice, [READ, Action.ADMIN])
    grant(scene, repository, who["grantee"], [WRITE])
    grant(scene, repository, who["gone"], [WRITE])
    grant(scene, other, who["elsewhere"], [WRITE])
    scene.catalog.do(update_user, who["gone"].user_id, now_ms=1, active=False)
    group, crew = (scene.catalog.do(add_group, name=name, now_ms=1) for name in ("grantees", "crews"))
    scene.catalog.do(set_permission, repository.id, SubjectKind.GROUP, group.id, [READ])
    scene.catalog.do(add_group_member, group.id, who["crew"].user_id)
    scene.catalog.do(add_group_member, crew.id, who["of crew"].user_id)
    project = scene.catalog.do(add_project, key="acme", now_ms=1)
    scene.catalog.do(bind_names, repository.id, "acme-*", project.id)
    scene.catalog.do(set_project_member, project.id, SubjectKind.GROUP, crew.id, ProjectRole.REPORTER)
    scene.catalog.do(set_project_member, project.id, SubjectKind.USER, who["dev"].user_id, ProjectRole.DEVELOPER)

    def known(identity, package="acme-x"):
        return list(now(scene.authorizer.known_people(identity, repository, package)))

    every = ["admin", "alice", "boss", "crew", "dev", "grantee", "of crew"]
    assert known(alice) == known(who["admin"]) == every
    assert known(alice, "zinc") == [each for each in every if each not in ("dev", "of crew")]
    assert known(who["dev"]) == known(who["of crew"]) == ["dev"]
    assert known(who["dev"], "zinc") == []
    reading = TokenLimits(repositories=(RepositoryScope(repository.path, frozenset({READ})),))
    assert known(evolve(who["dev"], limits=evolve(reading, scopes=frozenset({"api:read"})))) == ["dev"]
    whole = evolve(reading, repositories=(RepositoryScope(repository.path, frozenset({READ, *CHANGES})),))
    _, token = scene.token(scene.user("login"), whole)
    scene.catalog.do(set_project_member, project.id, SubjectKind.USER, token.user_id, ProjectRole.REPORTER)
    assert known(identity_of(scene.catalog.peek(find_user, token.user_id), via="token", token=token)) == [
        "dev",
        "login",
    ]
    narrowed = [evolve(each, limits=reading) for each in (alice, who["dev"])]
    for each in (who["stranger"], who["grantee"], ANONYMOUS, *narrowed):
        assert known(each) == []


def test_whoever_may_do_anything_in_a_repository_knows_of_it(scene, alice):
    private, public = scene.repository(1), scene.repository(2, visibility=Visibility.PUBLIC)
    guarded = scene.repository(3, visibility=Visibility.PUBLIC, settings={"auth": {"enabled": True}})
    knows = scene.authorizer.knows_now
    assert [knows(ANONYMOUS, each) for each in (private, public, guarded)] == [False, True, False]
    assert [knows(alice, each) for each in (private, public, guarded)] == [False, True, True]
    for actions, known in (([WRITE], True), ([Action.ADMIN], True), ([], False), (None, False)):
        grant(scene, private, alice, actions)
        assert knows(alice, private) is known


@pytest.mark.parametrize(
    ("role", "format", "bound", "known"),
    [
        (ProjectRole.REPORTER, "python", True, True),
        (ProjectRole.REPORTER, "python", False, False),
        (ProjectRole.GUEST, "python", True, False),
        (ProjectRole.DEVELOPER, "docker", False, True),
    ],
)
def test_members_of_a_project_know_where_it_owns_packages(scene, alice, role, format, bound, known):
    repository, other = scene.repository(1, format=format), scene.repository(2)
    project = scene.catalog.do(add_project, key="acme", now_ms=1)
    if bound:
        scene.catalog.do(bind_names, repository.id, "acme-*", project.id)
    scene.catalog.do(set_project_member, project.id, SubjectKind.USER, alice.user_id, role)
    assert now(scene.authorizer.knows(alice, repository)) is known
    assert not now(scene.authorizer.knows(alice, other))


@pytest.mark.parametrize(
    ("limits", "known"),
    [
        (TokenLimits(), True),
        (TokenLimits(packages=("x",)), True),
        (TokenLimits(repositories=(RepositoryScope("main/r1", frozenset({READ}), ("x",)),)), True),
        (TokenLimits(repositories=(RepositoryScope("main/r2", frozenset({READ})),)), False),
        (TokenLimits(repositories=(RepositoryScope("main/r1", frozenset()),)), False),
        (TokenLimits(expires_at=datetime.fromtimestamp(START - 1, UTC)), False),
    ],
)
def test_a_token_knows_of_what_it_reaches(scene, limits, known):
    admin = identity_of(scene.user("root", admin=True), via="token")
    repository = scene.repository(1)
    assert now(scene.authorizer.knows(evolve(admin, limits=limits), repository)) is known
    bearer = evolve(admin, via="bearer", scoped=True, limits=TokenLimits(repositories=(NOWHERE,)))
    assert now(scene.authorizer.knows(bearer, repository))


def test_in_a_repository_that_does_not_exist_nobody_may_anything(scene):
    admin = identity_of(scene.user("root", admin=True), via="password")
    phantom = evolve(scene.repository(1), id=NO_REPOSITORY)
    assert not now(scene.authorizer.knows(admin, phantom))
    assert not any(now(scene.authorizer.may(admin, action, phantom, "x")) for action in Action)
    assert not scene.authorizer._decisions  # anybody can make up as many as they like
