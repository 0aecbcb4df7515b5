from __future__ import annotations

import re
import tomllib

from pkgrepo.config import explain, read_config, template
from pkgrepo.config.reading import KEYS


def test_explaining_tells_value_and_origin_of_every_key():
    config = read_config(environ={"PKGREPO_SERVER__IDLE_TIMEOUT": "90", "PKGREPO_ADMIN_PASSWORD": "hunter2-hunter2"})
    told = {each.name: each for each in explain(config)}
    assert set(told) == set(KEYS)
    assert told["server.idle_timeout"].value == '"90s"'
    assert told["server.idle_timeout"].origin == "environment PKGREPO_SERVER__IDLE_TIMEOUT"
    assert (told["server.max_upload"].value, told["server.max_upload"].origin) == ('"10GiB"', "default")
    assert told["bootstrap.admin.password"].value == "***"
    assert told["tls.cert"].value == ""
    assert told["data.low_water"].value == '"auto"'


def test_an_explained_value_reads_back_as_itself():
    config = read_config()
    values = {
        each.name: tomllib.loads(f"value = {each.value}")["value"]
        for each in explain(config)
        if each.value and each.value != "***"
    }
    assert read_config(overrides=values) == config


def test_the_template_names_every_key_and_says_nothing_but_defaults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = template()
    file = tmp_path / "pkgrepo.toml"
    file.write_text(text)
    assert read_config(file) == read_config()
    # What is commented out is a setting with its default once the mark is gone.
    paragraphs = [each for each in text.split("\n\n") if "[[" not in each and ".NAME]" not in each]
    file.write_text(re.sub(r"(?m)^#(\w+ = .+)$", r"\1", "\n\n".join(paragraphs)))
    assert read_config(file).origins.keys() > {"server.listen", "bootstrap.admin.user"}
    assert read_config(file) == read_config()
    for name in KEYS:
        assert re.search(rf"(?m)^#({name.rpartition('.')[2]} =|\[\[{name}\]\]|\[{name}\.NAME\])", text), name


def test_the_template_says_that_a_secret_may_be_in_a_file(tmp_path):
    (tmp_path / "secret").write_text("correct horse battery")
    filled = template().replace("#password_file =", 'password_file = "secret"')
    file = tmp_path / "pkgrepo.toml"
    file.write_text(filled)
    password = read_config(file).bootstrap.admin.password
    assert password is not None
    assert password.reveal() == "correct horse battery"
    assert not re.search(r"(?m)^#hash_file", filled), "lists of tables take no such key"


def test_a_declared_list_in_the_template_works_once_it_is_filled_in(tmp_path):
    paragraph = next(each for each in template().split("\n\n") if "[[bootstrap.repositories]]" in each)
    filled = (
        re.sub(r"(?m)^#(?! )", "", paragraph).replace("name =", 'name = "py"').replace("format =", 'format = "python"')
    )
    file = tmp_path / "pkgrepo.toml"
    file.write_text(filled)
    (repository,) = read_config(file).bootstrap.repositories
    assert (repository.name, repository.format, repository.visibility) == ("py", "python", "public")


def test_credentials_in_declared_configurations_are_not_shown():
    routes = [
        {"url": "http://a.example", "auth": {"username": "ci", "password": "hidden-word"}},
        {"token": "hidden-word"},
    ]
    proxy = {"name": "py", "format": "python", "config": {"type": "Proxy", "proxy": {"routes": routes}}}
    (shown,) = [
        each.value
        for each in explain(read_config(overrides={"bootstrap.repositories": [proxy]}))
        if each.name == "bootstrap.repositories"
    ]
    assert "hidden-word" not in shown
    assert "http://a.example" in shown


def test_declared_objects_are_explained_as_toml_that_reads_back():
    overrides = {
        "bootstrap.repositories": [
            {"name": "py", "format": "python", "config": {"type": "Hosted", "policy": {"a": True}}}
        ],
        "bootstrap.tokens": [
            {
                "name": "ci",
                "user": "ann",
                "hash": "0" * 64,
                "repositories": [{"repository": "main/*", "actions": ["write"]}],
            }
        ],
    }
    config = read_config(overrides=overrides)
    told = {each.name: each.value for each in explain(config) if each.name in overrides}
    assert read_config(overrides=told) == config
