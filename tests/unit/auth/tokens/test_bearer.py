import base64
import json
from datetime import UTC, datetime

import jwt
import pytest
from attrs import evolve

from pkgrepo.auth.login.checkers import SignedChecker, identity_of
from pkgrepo.auth.login.credentials import SignedCredentials
from pkgrepo.auth.tokens.bearer import Access, BearerTokens, SigningKeys, allowed_words
from pkgrepo.auth.tokens.limits import SERVER_SCOPES
from pkgrepo.errors import AuthenticationFailed
from pkgrepo.model import ANONYMOUS, Action, RepositoryScope, SubjectKind, TokenLimits, Visibility
from pkgrepo.storage.catalog.people.grants import set_permission
from tests.support.auth import START
from tests.support.repositories import now

PULL = Access("main/r1/app", "main/r1", "app", ("pull",))
BOTH = Access("main/r1/app", "main/r1", "app", ("pull", "push"))


def claims_of(text):
    body = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def refused(scene, text):
    with pytest.raises(AuthenticationFailed):
        scene.bearer.read(text)
    return True


def test_claims_say_who_how_and_what(scene):
    user = scene.user("alice")
    issued = now(scene.bearer.issue(identity_of(user, via="password"), [BOTH]))
    claims = claims_of(issued.text)
    assert claims["sub"] == user.uid
    assert claims["am"] == "password"
    assert "tid" not in claims
    assert claims["gen"] == user.generation
    assert (claims["iat"], claims["exp"]) == (START, START + 900)
    assert claims["access"][0]["name"] == "main/r1/app"
    assert claims["access"][0]["actions"] == ["pull", "push"]
    assert jwt.get_unverified_header(issued.text)["kid"]
    assert issued.issued_at == datetime.fromtimestamp(START, UTC)
    assert issued.expires_in == 900


def test_an_access_token_is_named_and_bounds_the_time(scene):
    user = scene.user("alice")
    _, token = scene.token(user, TokenLimits(expires_at=datetime.fromtimestamp(START + 100, UTC)))
    issued = now(scene.bearer.issue(identity_of(user, via="token", token=token), [PULL]))
    assert claims_of(issued.text)["tid"] == token.id
    assert claims_of(issued.text)["am"] == "token"
    assert issued.expires_in == 100


def test_exchanging_a_bearer_token_again_gains_no_time(scene):
    user = scene.user("alice")
    first = issued = now(scene.bearer.issue(identity_of(user, via="password"), [PULL]))
    for _ in range(10):
        scene.clock.advance(50)
        limits = scene.bearer.read(issued.text).limits
        issued = now(scene.bearer.issue(evolve(identity_of(user, via="bearer"), limits=limits), [PULL]))
    assert claims_of(issued.text)["exp"] == claims_of(first.text)["exp"]


def test_a_word_grants_no_action_that_the_access_token_lacks(scene):
    limits = TokenLimits(repositories=(RepositoryScope("main/*", frozenset({Action.READ, Action.WRITE})),))
    user = scene.user("alice")
    _, token = scene.token(user, limits)
    issued = now(scene.bearer.issue(identity_of(user, via="token", token=token), [BOTH]))
    (scope,) = scene.bearer.read(issued.text).limits.repositories
    assert scope.actions == {Action.READ, Action.WRITE}


def test_reading_narrows_to_exactly_what_was_granted(scene):
    issued = now(scene.bearer.issue(identity_of(scene.user("alice"), via="password"), [BOTH]))
    limits = scene.bearer.read(issued.text).limits
    assert limits.repositories == (
        RepositoryScope("main/r1", frozenset({Action.READ, Action.WRITE, Action.OVERWRITE}), ("app",)),
    )
    assert limits.scopes == frozenset()


def test_no_grants_mean_no_repository_at_all(scene):
    scene_user = scene.user("alice", admin=True)
    repository = scene.repository(visibility=Visibility.PRIVATE)
    limits = scene.bearer.read(now(scene.bearer.issue(identity_of(scene_user, via="password"), [])).text).limits
    from attrs import evolve

    identity = evolve(identity_of(scene_user, via="bearer"), limits=limits)
    assert not now(scene.authorizer.may(identity, Action.READ, repository, "app"))


@pytest.mark.parametrize("admin", [False, True])
@pytest.mark.parametrize(
    "limits",
    [
        None,
        TokenLimits(),
        TokenLimits(scopes=frozenset({"system"})),
        TokenLimits(repositories=(RepositoryScope("main/r1", frozenset({Action.READ})),)),
        TokenLimits(packages=("x",), cidrs=("10.0.0.0/8",)),
    ],
)
def test_asked_for_without_a_scope_it_is_bound_as_the_credentials_behind_it(scene, limits, admin):
    user = scene.user("root", admin=admin)
    token = None if limits is None else scene.token(user, limits)[1]
    first = identity_of(user, via="password" if token is None else "token", token=token)
    found = established(scene, now(scene.bearer.issue(first, [], scoped=False)))
    assert found.scoped is False
    expected = TokenLimits(scopes=SERVER_SCOPES) if limits is None else limits
    assert evolve(found.limits, expires_at=None) == expected
    assert found.limits.expires_at == datetime.fromtimestamp(START + 960, UTC)
    images, files = scene.repository(1, format="docker"), scene.repository(2)
    assert not any(now(scene.authorizer.may(found, action, images, "x")) for action in Action)
    for action in Action:
        assert now(scene.authorizer.may(found, action, files, "x")) == now(
            scene.authorizer.may(first, action, files, "x")
        )


@pytest.mark.parametrize("access", [[], [PULL]])
def test_asked_for_with_a_scope_an_admins_reaches_that_alone(scene, access):
    found = established(
        scene, now(scene.bearer.issue(identity_of(scene.user("root", admin=True), via="password"), access))
    )
    assert found.scoped is True
    images, others = scene.repository(1, format="docker"), scene.repository(2, format="docker")
    reached = {
        (repository.id, package, action)
        for repository in (images, others)
        for package in ("app", "other", None)
        for action in Action
        if now(scene.authorizer.may(found, action, repository, package))
    }
    assert reached == ({(1, "app", Action.READ)} if access else set())
    assert not any(now(scene.authorizer.may_use(found, scope)) for scope in SERVER_SCOPES)


def test_exchanged_again_it_opens_no_more(scene):
    admin = identity_of(scene.user("root", admin=True), via="password")
    narrow = established(scene, now(scene.bearer.issue(admin, [PULL])))
    again = established(scene, now(scene.bearer.issue(narrow, [], scoped=False, catalog=True)))
    assert again.scoped is True
    assert again.limits.scopes == frozenset()
    assert not now(scene.authorizer.may(again, Action.READ, scene.repository(1, format="docker"), "app"))


def test_a_token_that_does_not_say_is_taken_for_one_with_scopes(scene):
    admin = identity_of(scene.user("root", admin=True), via="password")
    claims = claims_of(now(scene.bearer.issue(admin, [PULL], scoped=False)).text)
    del claims["scoped"]
    claims["adm"] = sorted(SERVER_SCOPES)
    found = scene.bearer.read(_sign(scene, claims))
    assert found.scoped
    assert found.limits.scopes == frozenset()


def established(scene, issued):
    checker = SignedChecker(scene.catalog, scene.bearer, clock=scene.clock)
    return now(checker._check(SignedCredentials(issued.text)))


@pytest.mark.filterwarnings("ignore:The HMAC key is:jwt.InsecureKeyLengthWarning")
@pytest.mark.parametrize(
    "forge",
    [
        lambda scene, claims: jwt.encode(claims, "x" * 32, "HS256", headers={"kid": scene.bearer._keys.current}),
        lambda scene, claims: jwt.encode(claims, None, "none", headers={"kid": scene.bearer._keys.current}),
        lambda scene, claims: jwt.encode(claims, _key(scene), "HS512", headers={"kid": scene.bearer._keys.current}),
        lambda scene, claims: jwt.encode(claims, _key(scene), "HS256", headers={"kid": "other"}),
        lambda scene, claims: jwt.encode(claims, _key(scene), "HS256"),
        lambda scene, claims: _sign(scene, {**claims, "aud": "another"}),
        lambda scene, claims: _sign(scene, {**claims, "iss": "another"}),
        lambda scene, claims: _sign(scene, {each: claims[each] for each in claims if each != "gen"}),
        lambda scene, claims: _sign(scene, {each: claims[each] for each in claims if each != "exp"}),
        lambda scene, claims: _sign(scene, {**claims, "iat": START + 3600}),
        lambda scene, claims: "a.b.c",
        lambda scene, claims: "..",
    ],
)
def test_forged_and_foreign_tokens_are_refused(scene, forge):
    claims = claims_of(now(scene.bearer.issue(ANONYMOUS, [PULL])).text)
    assert scene.bearer.read(_sign(scene, claims))
    assert refused(scene, forge(scene, claims))


def _key(scene):
    return scene.bearer._keys.secrets[scene.bearer._keys.current]


def _sign(scene, claims):
    return jwt.encode(claims, _key(scene), "HS256", headers={"kid": scene.bearer._keys.current})


def test_every_changed_character_is_refused(scene):
    text = now(scene.bearer.issue(ANONYMOUS, [PULL])).text
    for place in range(0, len(text) - 1, 7):  # the last character holds bits that base64 ignores
        other = "A" if text[place] != "A" else "B"
        assert refused(scene, text[:place] + other + text[place + 1 :])


def test_a_token_ends_after_its_time_and_the_skew_of_clocks(scene):
    text = now(scene.bearer.issue(ANONYMOUS, [PULL])).text
    scene.clock.advance(959)
    assert scene.bearer.read(text)
    scene.clock.advance(1)
    assert refused(scene, text)


def test_a_replaced_secret_is_honoured_while_it_is_kept_and_not_after(scene):
    text = now(scene.bearer.issue(ANONYMOUS, [PULL])).text
    old = scene.bearer._keys
    new = SigningKeys.single("n" * 40)
    both = SigningKeys(current=new.current, secrets={**old.secrets, **new.secrets})
    assert BearerTokens(scene.catalog, both, clock=scene.clock).read(text)
    with pytest.raises(AuthenticationFailed):
        BearerTokens(scene.catalog, new, clock=scene.clock).read(text)


@pytest.mark.parametrize(
    ("granted", "asked", "words"),
    [
        ([Action.READ], ["push", "pull"], ("pull",)),
        ([Action.READ, Action.WRITE], ["push", "pull", "pull"], ("pull", "push")),
        (list(Action), ["*"], ("pull", "push", "delete")),
        ([Action.READ, Action.DELETE], ["delete", "fly"], ("delete",)),
        ([], ["pull", "push"], ()),
    ],
)
def test_of_what_is_asked_the_allowed_part_is_granted(scene, granted, asked, words):
    user, repository = scene.user("alice"), scene.repository(format="docker")
    scene.catalog.do(set_permission, repository.id, SubjectKind.USER, user.id, granted)
    assert now(allowed_words(scene.authorizer, identity_of(user, via="password"), repository, "app", asked)) == words
