"""The table of the rules, once by hand and once as a cross product against a second telling of it."""

from itertools import product

import pytest
from attrs import evolve

from pkgrepo.auth.permissions.grants import Grants
from pkgrepo.auth.permissions.publishers import publisher_id
from pkgrepo.auth.permissions.rules import ROLES, Decision, Standing, decide
from pkgrepo.model import (
    ANONYMOUS,
    Action,
    Extent,
    Identity,
    Pipeline,
    ProjectRole,
    RepositoryScope,
    TokenLimits,
    Visibility,
)
from pkgrepo.storage.catalog.people.projects import add_project
from tests.support.auth import AuthServices, make_repository

R, W, OV, D, E, A = (Action(word) for word in ("read", "write", "overwrite", "delete", "edit", "admin"))
SCENE = AuthServices()
USER = SCENE.user("plain")
OWNER = SCENE.catalog.do(add_project, key="acme", now_ms=0)
ME = Identity(user_id=USER.id, username="plain", via="password")

FLAGS = {
    "plain": USER,
    "inactive": evolve(USER, active=False),
    "inactive admin": evolve(USER, active=False, admin=True),
    "admin": evolve(USER, admin=True),
    "system manager": evolve(USER, system_manager=True),
    "user manager": evolve(USER, user_manager=True),
    "gone": None,
}


def outcome(
    action,
    *,
    who="plain",
    own=None,
    groups=None,
    role=None,
    default=(),
    visibility="private",
    auth=False,
    anonymous=True,
    package="x",
    limits=None,
) -> Decision:
    user = FLAGS.get(who)
    if user is not None:
        user = evolve(user, default_actions=frozenset(default))
    standing = Standing(
        user=user,
        own=Grants() if own is None else Grants.of_user({1: frozenset(own), 2: frozenset(Action)}),
        groups=Grants() if groups is None else Grants.of_groups({"crew": {1: frozenset(groups), 2: frozenset(Action)}}),
        roles={} if role is None else {OWNER.id: ProjectRole(role)},
    )
    return decide(
        standing,
        evolve(ANONYMOUS if who == "nobody" else ME, limits=limits),
        action,
        make_repository(visibility=Visibility(visibility), settings={"auth": {"enabled": auth}}),
        package,
        owners=lambda: (OWNER,) if package in ("x", None, Extent.SOME) else (),
        anonymous=anonymous,
    )


READ_ONLY = TokenLimits(repositories=(RepositoryScope("main/r1", frozenset({R})),))
ELSEWHERE = TokenLimits(repositories=(RepositoryScope("main/r2", frozenset(Action)),))
ONE_PACKAGE = TokenLimits(packages=("x",))


@pytest.mark.parametrize(
    ("action", "given", "allowed"),
    [
        # visibility
        (R, {"who": "nobody", "visibility": "public"}, True),
        (R, {"who": "nobody", "visibility": "hidden"}, True),
        (R, {"who": "nobody", "visibility": "private"}, False),
        (R, {"who": "nobody", "visibility": "public", "auth": True}, False),
        (R, {"who": "nobody", "visibility": "hidden", "auth": True}, False),
        (R, {"who": "nobody", "visibility": "public", "anonymous": False}, False),
        (W, {"who": "nobody", "visibility": "public"}, False),
        (R, {"visibility": "public", "auth": True, "anonymous": False}, True),
        (R, {"visibility": "hidden"}, True),
        (R, {"visibility": "private"}, False),
        (W, {"visibility": "public"}, False),
        # flags
        (A, {"who": "admin"}, True),
        (D, {"who": "system manager"}, True),
        (A, {"who": "system manager"}, False),
        (A, {"who": "system manager", "own": [A]}, True),
        (R, {"who": "user manager"}, False),
        (R, {"who": "inactive", "visibility": "public"}, False),
        (R, {"who": "inactive admin"}, False),
        (R, {"who": "gone", "visibility": "public"}, False),
        # an admin's grants do not narrow an admin
        (W, {"who": "admin", "own": []}, True),
        # grants
        (R, {"own": [R]}, True),
        (W, {"own": [R], "groups": [W]}, False),
        (W, {"own": [R], "default": [W]}, False),
        (R, {"own": [], "visibility": "public"}, False),
        (R, {"own": [], "role": "owner"}, False),
        (W, {"groups": [R, W]}, True),
        (D, {"groups": [R, W], "default": [D]}, False),
        (R, {"groups": [], "visibility": "public"}, False),
        (W, {"own": [W], "groups": []}, True),
        # roles add
        (R, {"role": "guest", "visibility": "private"}, False),
        (R, {"role": "guest", "visibility": "hidden"}, True),
        (R, {"role": "reporter"}, True),
        (W, {"role": "reporter"}, False),
        (W, {"role": "reporter", "default": [W]}, True),
        (W, {"role": "developer"}, True),
        (D, {"role": "developer"}, False),
        (D, {"role": "maintainer"}, True),
        (A, {"role": "owner"}, False),
        (W, {"role": "developer", "package": "y"}, False),
        (W, {"role": "developer", "package": None}, True),
        (W, {"role": "reporter", "package": None}, False),
        (R, {"role": "reporter", "package": None}, False),
        (E, {"role": "owner", "package": None}, False),
        # default actions
        (W, {"default": [W]}, True),
        (R, {"default": [W], "visibility": "public"}, True),
        (R, {"default": [W]}, False),
        # tokens cap whoever owns them
        (W, {"who": "admin", "limits": READ_ONLY}, False),
        (R, {"who": "admin", "limits": READ_ONLY}, True),
        (R, {"who": "admin", "limits": ELSEWHERE}, False),
        # and never give less than none
        (R, {"visibility": "public", "limits": ELSEWHERE}, True),
        (R, {"visibility": "hidden", "limits": ELSEWHERE}, True),
        (R, {"visibility": "public", "limits": ONE_PACKAGE, "package": "y"}, True),
        (R, {"visibility": "public", "limits": ONE_PACKAGE, "package": None}, True),
        (R, {"visibility": "public", "limits": ONE_PACKAGE, "package": "y", "own": []}, False),
        (R, {"visibility": "public", "limits": ONE_PACKAGE, "package": "y", "who": "inactive"}, False),
        (R, {"visibility": "public", "limits": ONE_PACKAGE, "package": "y", "auth": True}, False),
        (R, {"visibility": "public", "limits": ONE_PACKAGE, "package": "y", "anonymous": False}, False),
        (R, {"visibility": "private", "limits": ONE_PACKAGE, "package": "y", "own": [R]}, False),
        (W, {"visibility": "public", "limits": ONE_PACKAGE, "package": "y", "own": [W]}, False),
        (R, {"limits": READ_ONLY}, False),
        (W, {"own": [W], "limits": ONE_PACKAGE}, True),
        (W, {"own": [W], "limits": ONE_PACKAGE, "package": "y"}, False),
        (W, {"own": [W], "limits": ONE_PACKAGE, "package": None}, True),
        (R, {"own": [R], "limits": ONE_PACKAGE, "package": None}, False),
        (R, {"who": "nobody", "visibility": "public", "limits": ELSEWHERE}, False),
    ],
)
def test_rule(action, given, allowed):
    decision = outcome(action, **given)
    assert decision.allowed is allowed, decision.reason


@pytest.mark.parametrize("who", [ANONYMOUS, ME])
def test_a_bearer_token_that_was_asked_for_without_a_scope_opens_no_images_and_nothing_else_is_closed_by_it(who):
    def allowed(format, scoped):
        repository = make_repository(format=format, visibility=Visibility.PUBLIC)
        identity = evolve(who, scoped=scoped)
        return decide(Standing(user=USER), identity, R, repository, "x", owners=lambda: (), anonymous=True).allowed

    assert [allowed("docker", scoped) for scoped in (None, True, False)] == [True, True, False]
    assert [allowed("python", scoped) for scoped in (None, True, False)] == [True, True, True]
    assert allowed("", False), "it stands for any repository to come"


def publisher(number, *actions, packages=()):
    return {"issuer": "forge", "claims": {"repository": f"acme/{number}"}, "packages": packages, "actions": actions}


@pytest.mark.parametrize(
    ("recognised", "action", "package", "allowed"),
    [
        # of the repository: both publish x, and the second one overwrites it
        ([1], W, "x", True),
        ([2], W, "x", True),
        ([1, 2], OV, "x", True),
        ([1], OV, "x", False),
        ([1, 2], W, "y", False),
        ([1, 2], R, "x", True),
        ([1, 2], R, None, False),
        # of the project that owns x: one publishes it, and another one only deletes
        ([3], W, "x", True),
        ([4], W, "x", False),
        ([3, 4], W, "x", True),
        ([3], W, "y", False),
        ([3], W, None, True),
        ([3], E, None, False),
        # of none
        ([], W, "x", False),
        ([5], W, "x", False),
        ([5], R, "x", False),
    ],
)
def test_a_pipeline_has_what_one_of_the_publishers_that_recognised_it_gives(recognised, action, package, allowed):
    ours = [publisher(1, "write", packages=["x"]), publisher(2, "write", "overwrite", packages=["x"])]
    of_project = [publisher(3, "write", packages=["x"]), publisher(4, "delete", packages=["x"]), publisher(5, "write")]
    project = evolve(OWNER, publishers=of_project[:2])
    ids = {number: publisher_id(each) for number, each in enumerate([*ours, *of_project], 1)}
    pipeline = Pipeline(
        name="acme",
        issuer="forge",
        subject="",
        publishers=frozenset(ids[each] for each in recognised if each < 3),
        projects=frozenset(ids[each] for each in recognised if each >= 3),
    )
    decision = decide(
        Standing(user=USER),
        evolve(ME, pipeline=pipeline),
        action,
        make_repository(settings={"publishers": ours}),
        package,
        owners=lambda: (project,) if package != "y" else (),
        anonymous=True,
    )
    assert decision.allowed is allowed


def second_telling(action, who, own, groups, role, default, visibility, auth, anonymous, package, limits):
    """The same rules, as conditions that let the action pass."""
    open_ = action is R and anonymous and not auth and visibility != "private" and who != "nobody"
    if not open_ and (limits is ELSEWHERE or (limits is READ_ONLY and action is not R)):
        return False
    if not open_ and limits is ONE_PACKAGE and (package == "y" or (package is None and action in {R, E, A})):
        return False
    if who == "nobody":
        return action is R and anonymous and not auth and visibility != "private"
    if who.startswith("inactive"):
        return False
    if who == "admin" or (who == "system manager" and action is not A):
        return True
    if own is not None:
        return action in own
    if groups is not None:
        return action in groups
    by_role = role is not None and (
        (package == "x" and action in ROLES[ProjectRole(role)])
        or (package == "x" and role == "guest" and action is R and visibility != "private")
        or (package is None and action in {W, OV, D} and action in ROLES[ProjectRole(role)])
    )
    return by_role or action in default or (action is R and visibility != "private")


def test_the_cross_product_agrees_with_a_second_telling():
    axes = {
        "action": list(Action),
        "who": ["nobody", "plain", "inactive", "inactive admin", "admin", "system manager"],
        "own": [None, [], [R], [R, W]],
        "groups": [None, [], [R, W]],
        "role": [None, "guest", "developer", "owner"],
        "default": [[], [W]],
        "visibility": ["public", "hidden", "private"],
        "auth": [False, True],
        "anonymous": [True, False],
        "package": [None, "x", "y"],
        "limits": [None, READ_ONLY, ELSEWHERE, ONE_PACKAGE],
    }
    count, wrong = 0, []
    for values in product(*axes.values()):
        given = dict(zip(axes, values, strict=True))
        if given["who"] == "nobody" and (given["own"] or given["groups"] or given["role"] or given["default"]):
            continue
        if given["who"] != "nobody" and not given["anonymous"]:
            continue
        count += 1
        if outcome(**given).allowed is not second_telling(**given):
            wrong.append(given)
    assert wrong[:3] == []
    assert count > 50_000
