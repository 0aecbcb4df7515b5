from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pkgrepo.config import Config, ConfigError, explain, read_config
from pkgrepo.config.kinds import SettingError, duration, show_duration, show_size, size
from pkgrepo.config.reading import KEYS


def problems_of(**arguments: object) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        read_config(**arguments)
    return caught.value.problems


def directory(**settings: object) -> dict[str, object]:
    """The settings of a directory."""
    return {"auth.ldap": {"corp": {"url": "ldaps://ldap.corp.example", "base_dn": "dc=corp", **settings}}}


@pytest.fixture
def write(tmp_path: Path):
    def write(content: str) -> Path:
        file = tmp_path / "pkgrepo.toml"
        file.write_text(content)
        return file

    return write


def test_a_small_profile_changes_what_is_not_set():
    small = read_config(environ={"PKGREPO_SERVER__PROFILE": "small"}).server
    assert (small.workers, small.cache_memory) == (1, 16 * 1024 * 1024)
    own = {"PKGREPO_SERVER__PROFILE": "small", "PKGREPO_SERVER__WORKERS": "2", "PKGREPO_SERVER__CACHE_MEMORY": "64MiB"}
    small = read_config(environ=own).server
    assert (small.workers, small.cache_memory) == (2, 64 * 1024 * 1024)
    assert (read_config().server.workers, read_config().server.cache_memory) == (None, None)


def test_without_any_source_every_default_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = read_config()
    assert config == Config()
    assert config.server.listen == ("tcp:8081:interface=127.0.0.1",)
    assert config.data.dir == tmp_path / "data"
    assert config.database_path == tmp_path / "data" / "pkgrepo.db"
    assert config.server.max_upload == 10 * 2**30
    assert config.data.low_water is None
    assert config.origins == {}


def test_options_win_over_the_environment_and_that_over_the_file(write):
    file = write("[server]\nidle_timeout = 1\nshutdown_grace = 1\nmax_upload = 1\n")
    config = read_config(
        file,
        environ={"PKGREPO_SERVER__IDLE_TIMEOUT": "2", "PKGREPO_SERVER__SHUTDOWN_GRACE": "2"},
        overrides={"server.idle_timeout": "3"},
    )
    assert (config.server.idle_timeout_s, config.server.shutdown_grace_s, config.server.max_upload) == (3, 2, 1)
    assert config.origins == {
        "server.idle_timeout": "command line",
        "server.shutdown_grace": "environment PKGREPO_SERVER__SHUTDOWN_GRACE",
        "server.max_upload": str(file),
    }


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("SERVER__LISTEN", '["tcp:9000:interface=127.0.0.1"]', "listen", ("tcp:9000:interface=127.0.0.1",)),
        ("SERVER__LISTEN", "tcp:9000", "listen", ("tcp:9000",)),
        ("SERVER__LISTEN", '["tcp:1", "unix:/run/x"]', "listen", ("tcp:1", "unix:/run/x")),
        ("SERVER__TRUSTED_PROXIES", "10.0.0.0/8", "trusted_proxies", ("10.0.0.0/8",)),
        ("SERVER__TRUSTED_PROXIES", '["::1"]', "trusted_proxies", ("::1/128",)),
        ("SERVER__TRUSTED_PROXIES", '["unix", "10.0.0.1"]', "trusted_proxies", ("unix", "10.0.0.1/32")),
        ("SERVER__HEADER_COUNT", "77", "header_count", 77),
        ("SERVER__MAX_UPLOAD", "1.5GiB", "max_upload", 3 * 2**29),
        ("SERVER__MAX_UPLOAD", "1000", "max_upload", 1000),
        ("SERVER__PUBLIC_URL", "https://a.example/sub/", "public_url", "https://a.example/sub"),
        ("SERVER__WRITE_STALL", "1.5h", "write_stall_s", 5400),
    ],
)
def test_a_variable_is_read_as_its_key_wants(variable, text, name, value):
    assert getattr(read_config(environ={f"PKGREPO_{variable}": text}).server, name) == value


OIDC = {"issuer": "https://login.example", "client_id": "us"}


def test_keys_of_a_named_table_are_variables_of_their_own_beside_a_file(tmp_path):
    (tmp_path / "a.toml").write_text('[auth.oidc.my-idp]\nissuer = "https://old.example"\nclient_id = "7"\n')
    environ = {
        "PKGREPO_AUTH__OIDC__MY_IDP__ISSUER": "https://login.example",
        "PKGREPO_AUTH__OIDC__MAIN__ISSUER": "https://main.example",
        "PKGREPO_AUTH__OIDC__MAIN__CLIENT_ID": "12345",
        "PKGREPO_AUTH__OIDC__MAIN__AUTO_CREATE": "true",
        "PKGREPO_AUTH__OIDC__MAIN__SCOPES": '["openid"]',
    }
    found = read_config(tmp_path / "a.toml", environ=environ).auth.oidc
    assert (found["my-idp"].issuer, found["my-idp"].client_id) == ("https://login.example", "7")
    assert (found["main"].client_id, found["main"].auto_create, found["main"].scopes) == ("12345", True, ("openid",))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"main": OIDC}),
        json.dumps({"main": OIDC}, indent=1),
        '{main = {issuer = "https://login.example", client_id = "us"}}',
    ],
)
def test_a_table_in_a_variable_is_json_or_toml(text):
    found = read_config(environ={"PKGREPO_AUTH__OIDC": text}).auth.oidc
    assert (found["main"].issuer, found["main"].client_id) == (OIDC["issuer"], "us")
    repositories = [{"name": "py", "format": "python"}]
    found = read_config(environ={"PKGREPO_BOOTSTRAP__REPOSITORIES": json.dumps(repositories)}).bootstrap.repositories
    assert [each.name for each in found] == ["py"]


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"AUTH__OIDC__MAIN__ISSUR": "x"}, "did you mean PKGREPO_AUTH__OIDC__MAIN__ISSUER?"),
        ({"AUTH__OIDC": "main"}, "in JSON or TOML, or each key in PKGREPO_AUTH__OIDC__NAME__KEY"),
        ({"BOOTSTRAP__REPOSITORIES": "py"}, "must be a list of tables, in JSON or TOML"),
        ({"AUTH__OIDC__MAIN__CLIENT_ID": "us"}, "auth.oidc.main.issuer: is missing"),
        ({"AUTH__OIDC__MAIN__ISSUER": "ftp://x"}, "auth.oidc.main.issuer: "),
        ({"AUTH__OIDC": "{}", "AUTH__OIDC__MAIN__CLIENT_ID": "us"}, "is said twice"),
        ({"AUTH__OIDC__A_B__CLIENT_ID": "us", "AUTH__OIDC__A-B__CLIENT_ID": "us"}, "is said twice"),
        ({"AUTH__OIDC__MAIN__CLIENT_ID_FILE": "/nowhere"}, "cannot read /nowhere"),
    ],
)
def test_wrong_variables_of_tables_name_the_form_that_works(environ, told):
    with pytest.raises(ConfigError) as caught:
        read_config(environ={f"PKGREPO_{name}": value for name, value in environ.items()})
    assert told in str(caught.value)


def test_the_short_variables_name_the_first_admin(tmp_path):
    (tmp_path / "secret").write_text('"quoted" and spaced \n')
    admin = read_config(
        environ={"PKGREPO_ADMIN_USER": "root", "PKGREPO_ADMIN_PASSWORD_FILE": str(tmp_path / "secret")}
    ).bootstrap.admin
    assert admin.user == "root"
    assert admin.password.reveal() == '"quoted" and spaced '


@pytest.mark.parametrize("password", ["true", "12", '["x"]', '"q"', "p=ss wörd", "'", "a\nb"])
def test_a_password_in_the_environment_is_taken_as_it_is(password):
    password += " of the first admin"
    assert read_config(environ={"PKGREPO_ADMIN_PASSWORD": password}).bootstrap.admin.password.reveal() == password


def test_any_variable_may_name_a_file_but_a_key_that_ends_so_is_itself(tmp_path):
    (tmp_path / "listen").write_text('["tcp:1"]\n')
    config = read_config(
        environ={
            "PKGREPO_SERVER__LISTEN_FILE": str(tmp_path / "listen"),
            "PKGREPO_LOG__AUDIT_FILE": str(tmp_path / "audit"),
        }
    )
    assert config.server.listen == ("tcp:1",)
    assert config.log.audit_file == tmp_path / "audit"
    assert str(tmp_path / "listen") in config.origins["server.listen"]


def test_only_secrets_come_from_files_in_the_file(write, tmp_path):
    (tmp_path / "pw").write_text("from beside the file\n")
    config = read_config(write('[bootstrap.admin]\npassword_file = "pw"\n'))
    assert config.bootstrap.admin.password.reveal() == "from beside the file"
    (problem,) = problems_of(file=write('[server]\nlisten_file = "pw"\n'))
    assert "server.listen_file is not a setting; did you mean server.listen?" in problem


def test_relative_paths_start_where_they_are_written(write, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file = write('[data]\ndir = "d"\n[log]\naudit_file = "a"\n')
    monkeypatch.chdir(elsewhere)
    config = read_config(file, environ={"PKGREPO_LOG__AUDIT_FILE": "b"})
    assert config.data.dir == tmp_path / "d"
    assert config.log.audit_file == elsewhere / "b"


def test_every_problem_is_told_at_once_with_key_and_origin(write):
    file = write(
        '[server]\nlisten = []\nidle_timeout = "soon"\nheader_count = true\n[tls]\ncert = "none.pem"\n'
        '[sever]\nx = 1\n[metrics]\nenabled = 1\n[log]\nlevel = "loud"\n[auth]\nanonymus = false\n'
    )
    problems = problems_of(file=file, environ={"PKGREPO_DATA_DIR": "x", "PKGREPO_SERVER__MAX_UPLOAD": "0"})
    told = "\n".join(problems)
    for expected in (
        "server.idle_timeout: must be a duration",
        "server.header_count: must be a whole number from 10 to 10000",
        "tls.cert: must be the path of a file",
        "sever.x is not a setting",
        "metrics.enabled: must be true or false",
        'log.level: must be "debug" or "info" or "warn" or "error"',
        "auth.anonymus is not a setting; did you mean auth.anonymous?",
        "PKGREPO_DATA_DIR is not a setting; did you mean PKGREPO_DATA__DIR?",
        "server.max_upload: must be from 1B to",
        "(set by environment PKGREPO_SERVER__MAX_UPLOAD)",
        f"(set by {file})",
    ):
        assert expected in told
    assert len(problems) == 9


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"server.listen": []}, "server.listen: must name at least one address"),
        ({"server.listen": ["8081"]}, "is not an endpoint"),
        ({"server.listen": ["tcp:http:x=1"]}, "is not an endpoint"),
        ({"server.public_url": "ftp://x"}, "must be an address"),
        ({"server.public_url": "https://user@x/"}, "must be an address"),
        ({"server.public_url": "https://x:99999/"}, "must be an address"),
        ({"server.public_url": "https://x/?a"}, "must be an address"),
        ({"server.trusted_proxies": ["10.0.0.1/8"]}, "is not a network"),
        ({"database.url": "mysql://x/y"}, "sqlite:///"),
        ({"database.url": "postgresql://u:secret@x/y"}, "database.password"),
        ({"database.url": "postgresql://u:sec/ret@x/y"}, "database.password"),
        ({"database.url": "postgresql://x/y?user=u&password=secret"}, "database.password"),
        ({"database.url": "postgresql://x/y?sslpassword=secret"}, "database.password"),
        ({"database.replica_url": "postgresql://x/y"}, "database.replica_url: has a meaning with PostgreSQL only"),
        ({"database.replica_url": "sqlite:///x"}, 'a "postgresql://" address without password'),
        ({"database.replica_url": "postgresql://u:secret@x/y"}, "database.password"),
        ({"backup.destination": "s3://bucket/a"}, "backup.endpoint: is missing"),
        ({"backup.destination": "s3://Bucket?x"}, "a path, an address such as s3://bucket/prefix"),
        ({"backup.schedule": "30 2 * *"}, "backup.schedule: a schedule has five fields"),
        ({"backup.keep": 0}, "backup.keep: must be"),
        ({"data.dir": ""}, "must be a path"),
        ({"data.fsync": "batch"}, '"always" or "never"'),
        ({"server.worker": 2}, "server.worker is not a setting; did you mean server.workers?"),
        ({"bootstrap.admin.user": "a b"}, "bootstrap.admin.user: must be 3 to 32 letters"),
        ({"bootstrap.admin.password_hash": "$2b$x"}, "must begin with $argon2id$"),
        ({"bootstrap.admin.password": ""}, "bootstrap.admin.password: must be a text"),
        ({"bootstrap.admin.password": "too short"}, "bootstrap.admin.password: a password has at least 12 characters"),
        ({"bootstrap.admin.password": "admin1234567"}, "bootstrap.admin.password: the password is the user name"),
        ({"bootstrap.repositories": "py"}, "must be a list of tables"),
        ({"bootstrap.repositories": [{"name": "py"}]}, "bootstrap.repositories[0].format: is missing"),
        ({"bootstrap.tokens": [{"name": "x", "user": "ann"}]}, "bootstrap.tokens[0]: give either hash or file"),
        (
            {
                "bootstrap.tokens": [
                    {"name": "x", "user": "ann", "hash": "0" * 64, "repositories": [{"actions": "fly"}]}
                ]
            },
            "bootstrap.tokens[0].repositories[0].actions: must be a list of actions; 'fly' must be",
        ),
        ({"auth.ldap": {"corp": {"url": "ldaps://x"}}}, "auth.ldap.corp.base_dn: is missing"),
        (directory(url="https://x"), "auth.ldap.corp.url: must be an address such as"),
        (directory(url="ldaps://x:0"), "auth.ldap.corp.url: must be an address: it has no valid host and port"),
        (directory(url="ldap://ldap.corp.example"), "auth.ldap.corp.url: must begin with ldaps://, or have start_tls"),
        (directory(more_urls=["ldap://x"]), "auth.ldap.corp.more_urls: must begin with ldaps://, or have start_tls"),
        (directory(bind_dn="cn=x"), "auth.ldap.corp.bind_password_file: goes with bind_dn"),
        (directory(user_filter="(uid=ann)"), "auth.ldap.corp.user_filter: must be a filter with {username} in it"),
        (directory(user_filter="uid={username}"), "auth.ldap.corp.user_filter: must be an LDAP filter"),
        (directory(user_filter=""), "auth.ldap.corp.user_filter: must be"),
        (directory(group_filter="(member={who})"), "auth.ldap.corp.group_filter: must be a filter with {dn}"),
        (directory(username_attribute="uid)"), "auth.ldap.corp.username_attribute: must be the name of an attribute"),
        ({"auth.issuers": []}, "auth.issuers: must be tables with a name each"),
        ({"auth.issuers": {"A b": {}}}, "auth.issuers.A b: must have a name of 1 to 32 lower-case letters"),
        ({"auth.issuers": {"forge": "https://x"}}, "auth.issuers.forge: must be a table"),
        ({"auth.issuers": {"forge": {}}}, "auth.issuers.forge.issuer: is missing"),
        (
            {"auth.issuers": {"forge": {"issuer": "http://forge.example", "audience": "x"}}},
            "auth.issuers.forge.issuer: must begin with https://",
        ),
        ({"auth.issuers": {"forge": {"issuer": "https://u@x/", "audience": "x"}}}, "must be an address"),
        ({"auth.issuers": {"forge": {"issuer": "https://forge.example"}}}, "auth.issuers.forge.audience: is missing"),
        (
            {"auth.issuers": {key: {"issuer": "https://forge.example", "audience": "x"} for key in ("a", "b")}},
            "auth.issuers.b.issuer: is there more than once",
        ),
        (
            {"bootstrap.storages": [{"name": "main"}, {"name": "MAIN"}]},
            "bootstrap.storages: main is there more than once",
        ),
    ],
)
def test_values_that_will_not_do_are_refused_by_name(overrides, expected):
    assert expected in "\n".join(problems_of(overrides=overrides))


def test_tables_with_a_name_are_read_from_file_and_environment(write):
    file = write('[auth.issuers.forge]\nissuer = "https://forge.example"\naudience = "packages"\n')
    config = read_config(file)
    assert {name: each.issuer for name, each in config.auth.issuers.items()} == {"forge": "https://forge.example"}
    shown = next(each.value for each in explain(config) if each.name == "auth.issuers")
    assert shown == '{forge = {issuer = "https://forge.example", audience = "packages", kind = ""}}'
    assert read_config(environ={"PKGREPO_AUTH__ISSUERS": shown}).auth == config.auth


def test_names_of_groups_elsewhere_are_any_text_and_those_here_are_names(write):
    section = '[auth.oidc.corp]\nissuer = "https://login.example"\nclient_id = "us"\n'
    config = read_config(write(f'{section}[auth.oidc.corp.group_names]\n"IT Staff" = "it"\n"/crew" = "crew"\n'))
    assert config.auth.oidc["corp"].group_names == {"IT Staff": "it", "/crew": "crew"}
    (problem,) = problems_of(file=write(f'{section}group_names = {{ "x" = "IT Staff" }}\n'))
    assert problem.startswith("auth.oidc.corp.group_names.x: must be 1 to 64 letters")
    (problem,) = problems_of(file=write(f'{section}group_names = "it"\n'))
    assert problem.startswith("auth.oidc.corp.group_names: must be a table")


def test_a_key_said_twice_in_one_place_is_refused(tmp_path):
    (tmp_path / "pw").write_text("hunter2-hunter2")
    environ = {"PKGREPO_ADMIN_PASSWORD": "hunter2-hunter2", "PKGREPO_ADMIN_PASSWORD_FILE": str(tmp_path / "pw")}
    (problem,) = problems_of(environ=environ)
    assert "bootstrap.admin.password: is said twice" in problem


def test_a_secret_file_that_cannot_be_read_is_named():
    (problem,) = problems_of(environ={"PKGREPO_ADMIN_PASSWORD_FILE": "/nonexistent/pw"})
    assert problem == "PKGREPO_ADMIN_PASSWORD_FILE: cannot read /nonexistent/pw: No such file or directory"


def test_a_file_that_is_no_toml_is_told_with_its_line(write):
    (problem,) = problems_of(file=write("[server\n"))
    assert "line 1" in problem
    (problem,) = problems_of(file=Path("/nonexistent/pkgrepo.toml"))
    assert problem == "/nonexistent/pkgrepo.toml: No such file or directory"


def test_variables_of_kubernetes_and_of_the_scripts_are_no_settings():
    environ = {
        "PKGREPO_PORT": "tcp://10.0.0.1:80",
        "PKGREPO_PORT_8081_TCP_ADDR": "10.0.0.1",
        "PKGREPO_SERVICE_HOST": "10.0.0.1",
        "PKGREPO_SERVICE_PORT_HTTP": "80",
        "PKGREPO_CONFIG": "x",
        "PKGREPO_REQUIRE_CLIENTS": "1",
        "OTHER": "y",
    }
    assert read_config(environ=environ).origins == {}


def test_tls_needs_both_of_its_files(tmp_path):
    (tmp_path / "c.pem").write_text("x")
    (problem,) = problems_of(overrides={"tls.cert": str(tmp_path / "c.pem")})
    assert problem == "tls.key: is missing, since tls.cert is set"
    (problem,) = problems_of(overrides={"tls.key": str(tmp_path / "c.pem")})
    assert problem == "tls.cert: is missing, since tls.key is set"


def test_a_token_file_is_kept_as_the_hash_of_its_text(write, tmp_path):
    (tmp_path / "token").write_text("pkgr_p_abc\n")
    config = read_config(write('[[bootstrap.tokens]]\nname = "ci"\nuser = "admin"\nfile = "token"\n'))
    (token,) = config.bootstrap.tokens
    assert token.hash == hashlib.sha256(b"pkgr_p_abc").hexdigest()
    assert token.file is None
    (tmp_path / "token").write_text("something else\n")
    assert "holds no token" in "\n".join(problems_of(file=tmp_path / "pkgrepo.toml"))


def test_declared_objects_are_read_from_tables_and_from_a_variable(write):
    file = write(
        '[[bootstrap.storages]]\nname = "main"\n'
        '[[bootstrap.repositories]]\nname = "py"\nformat = "python"\nvisibility = "private"\n'
    )
    bootstrap = read_config(file).bootstrap
    assert [each.name for each in bootstrap.storages] == ["main"]
    (repository,) = bootstrap.repositories
    assert (repository.storage, repository.format, repository.visibility) == ("main", "python", "private")
    assert repository.config == {"type": "Hosted"}
    environ = {"PKGREPO_BOOTSTRAP__REPOSITORIES": '[{name = "gems", format = "ruby"}]'}
    assert [each.name for each in read_config(file, environ=environ).bootstrap.repositories] == ["gems"]


def test_no_secret_is_ever_shown():
    config = read_config(environ={"PKGREPO_ADMIN_PASSWORD": "hunter2-hunter2"})
    assert "hunter2" not in repr(config) + str(config)
    told = problems_of(environ={"PKGREPO_ADMIN_PASSWORD": "hunter2-hunter2", "PKGREPO_AUTH__ANONYMOUS": "x"})
    assert "hunter2" not in "\n".join(told)


def test_every_key_is_explained_and_spelled_in_one_way():
    for name, key in KEYS.items():
        assert key.explanation, name
        assert name == name.lower()


@given(st.integers(0, 10**7))
def test_a_shown_duration_reads_back(milliseconds):
    seconds = milliseconds / 1000
    assert duration(0, 10**9).read(show_duration(seconds), Path()) == pytest.approx(seconds)


@given(st.integers(0, 2**50))
def test_a_shown_size_reads_back(count):
    assert size(0).read(show_size(count), Path()) == count


@example("~nobody-here")
@given(st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none(), st.lists(st.integers())))
def test_any_value_is_read_or_refused_but_never_breaks_the_reader(value):
    for key in KEYS.values():
        with contextlib.suppress(SettingError):
            key.kind.read(value, Path("/nonexistent"))


def test_a_directory_has_its_defaults_and_needs_no_tls_on_this_machine():
    found = read_config(overrides=directory(url="ldap://127.0.0.1:3890", group_filter="")).auth.ldap["corp"]
    assert (found.user_filter, found.group_filter, found.connections) == ("(uid={username})", "", 4)
    plain = directory(url="ldap://ldap.corp.example", start_tls=True)
    assert read_config(overrides=plain).auth.ldap["corp"].start_tls
