import base64
import json
from datetime import UTC, datetime

import jwt
import pytest
from attrs import evolve

from pkgrepo.auth.bearer import Access, BearerTokens, SigningKeys, allowed_words
from pkgrepo.auth.checkers import identity_of
from pkgrepo.auth.limits import SERVER_SCOPES
from pkgrepo.errors import AuthenticationFailed
from pkgrepo.model import ANONYMOUS, Action, RepositoryScope, SubjectKind, TokenLimits, Visibility
from pkgrepo.storage.catalog.grants import set_permission
from tests.support.auth import START, Scene

PULL = Access("main/r1/app", "main/r1", "app", ("pull",))
BOTH = Access("main/r1/app", "main/r1", "app", ("pull", "push"))


@pytest.fixture
def scene():
    return Scene()


def claims_of(text):
    body = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def refused(scene, text):
    with pytest.raises(AuthenticationFailed):
        scene.bearer.read(text)
    return True


def test_claims_say_who_how_and_what(scene):
    user = scene.user("alice")
    issued = scene.bearer.issue(identity_of(user, via="password"), [BOTH])
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
    issued = scene.bearer.issue(identity_of(user, via="token", token=token), [PULL])
    assert claims_of(issued.text)["tid"] == token.id
    assert claims_of(issued.text)["am"] == "token"
    assert issued.expires_in == 100


def test_exchanging_a_bearer_token_again_gains_no_time(scene):
    user = scene.user("alice")
    first = issued = scene.bearer.issue(identity_of(user, via="password"), [PULL])
    for _ in range(10):
        scene.clock.advance(50)
        limits = scene.bearer.read(issued.text).limits
        issued = scene.bearer.issue(evolve(identity_of(user, via="bearer"), limits=limits), [PULL])
    assert claims_of(issued.text)["exp"] == claims_of(first.text)["exp"]


def test_a_word_grants_no_action_that_the_access_token_lacks(scene):
    limits = TokenLimits(repositories=(RepositoryScope("main/*", frozenset({Action.READ, Action.WRITE})),))
    user = scene.user("alice")
    _, token = scene.token(user, limits)
    issued = scene.bearer.issue(identity_of(user, via="token", token=token), [BOTH])
    (scope,) = scene.bearer.read(issued.text).limits.repositories
    assert scope.actions == {Action.READ, Action.WRITE}


def test_reading_narrows_to_exactly_what_was_granted(scene):
    issued = scene.bearer.issue(identity_of(scene.user("alice"), via="password"), [BOTH])
    limits = scene.bearer.read(issued.text).limits
    assert limits.repositories == (
        RepositoryScope("main/r1", frozenset({Action.READ, Action.WRITE, Action.OVERWRITE}), ("app",)),
    )
    assert limits.scopes == frozenset()


def test_no_grants_mean_no_repository_at_all(scene):
    scene_user = scene.user("alice")
    repository = scene.repository(visibility=Visibility.PUBLIC)
    limits = scene.bearer.read(scene.bearer.issue(identity_of(scene_user, via="password"), []).text).limits
    from attrs import evolve

    identity = evolve(identity_of(scene_user, via="bearer"), limits=limits)
    assert not scene.authorizer.may(identity, Action.READ, repository, "app")


@pytest.mark.parametrize(
    ("limits", "scopes"),
    [
        (None, SERVER_SCOPES),
        (TokenLimits(scopes=frozenset({"system"})), {"system"}),
        (TokenLimits(), set()),
        (TokenLimits(repositories=(RepositoryScope("main/r1", frozenset({Action.READ})),)), None),
        (TokenLimits(packages=("x",)), None),
    ],
)
def test_an_admins_token_opens_what_the_admin_holds_unless_narrowed_before(scene, limits, scopes):
    from attrs import evolve

    admin = evolve(identity_of(scene.user("root", admin=True), via="password"), limits=limits)
    found = scene.bearer.read(scene.bearer.issue(admin, []).text).limits
    if scopes is None:
        assert found.repositories
        assert found.scopes == frozenset()
    else:
        assert found.repositories == ()
        assert found.scopes == scopes


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
    claims = claims_of(scene.bearer.issue(ANONYMOUS, [PULL]).text)
    assert scene.bearer.read(_sign(scene, claims))
    assert refused(scene, forge(scene, claims))


def _key(scene):
    return scene.bearer._keys.secrets[scene.bearer._keys.current]


def _sign(scene, claims):
    return jwt.encode(claims, _key(scene), "HS256", headers={"kid": scene.bearer._keys.current})


def test_every_changed_character_is_refused(scene):
    text = scene.bearer.issue(ANONYMOUS, [PULL]).text
    for place in range(0, len(text) - 1, 7):  # the last character holds bits that base64 ignores
        other = "A" if text[place] != "A" else "B"
        assert refused(scene, text[:place] + other + text[place + 1 :])


def test_a_token_ends_after_its_time_and_the_skew_of_clocks(scene):
    text = scene.bearer.issue(ANONYMOUS, [PULL]).text
    scene.clock.advance(959)
    assert scene.bearer.read(text)
    scene.clock.advance(1)
    assert refused(scene, text)


def test_a_replaced_secret_is_honoured_while_it_is_kept_and_not_after(scene):
    text = scene.bearer.issue(ANONYMOUS, [PULL]).text
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
    assert allowed_words(scene.authorizer, identity_of(user, via="password"), repository, "app", asked) == words
