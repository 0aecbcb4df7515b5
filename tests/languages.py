"""
Keeps the catalogs of the console up to date: ``bin/languages`` takes over which messages there are now.

A message that is new has no translation yet, and those that are not there any more go.
``tests/unit/web/test_languages.py`` is red until a catalog is whole. A list of translations, as
``bin/languages --fill LANGUAGE FILE`` takes it, is JSON: an object of messages and translations, of which those with a
plural are lists of forms.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po
from jinja2 import nodes

import pkgrepo.web
from pkgrepo.composition.core import make_formats
from pkgrepo.config.settings import Config
from pkgrepo.web.administration import policy, retention
from pkgrepo.web.administration.schema_fields import label_of
from pkgrepo.web.rendering.languages import CATALOG, FOLDER, WORDS, Message, load_languages, message_of
from pkgrepo.web.rendering.marking import with_marks
from pkgrepo.web.rendering.pages import Assets, PageRenderer

ROOM = Path(pkgrepo.web.__file__).parent
CATALOGS = {path.parents[1].name: path for path in sorted((ROOM / FOLDER).glob(f"*/LC_MESSAGES/{CATALOG}"))}
WIDTH = 120


def messages() -> list[Message]:
    """All messages: of templates, of Python, of the script, and of words that data have."""
    renderer = PageRenderer(Assets())
    environment = renderer._environment(next(iter(load_languages().values())))
    found: dict[Message, None] = {}
    for name, source in sorted(renderer._sources.items()):
        found |= dict.fromkeys(_of_template(environment.parse(with_marks(source), name)))
    for path in sorted(ROOM.rglob("*.py")):
        found |= dict.fromkeys(of_python(ast.parse(path.read_text())))
    found |= dict.fromkeys(Assets().script_texts)
    found |= dict.fromkeys((*labels(), *WORDS))
    return list(found)


def _of_template(tree: nodes.Template) -> Iterator[Message]:
    for each in tree.find_all((nodes.Call, nodes.Filter)):
        match each:
            case nodes.Filter(node=nodes.Const(value=str() as text), name="translated"):
                yield text
            case nodes.Call(node=nodes.Name(name="_"), args=[nodes.Const(value=str() as text)]):
                yield text
            case nodes.Call(node=nodes.Name(name="_"), args=[nodes.Const(value=str() as text), *_]):
                yield text
            case nodes.Filter(name="plural" | "noun", args=args):
                yield message_of(*(each.as_const() for each in args))


def of_python(tree: ast.AST) -> Iterator[Message]:
    """The messages of a module: texts in calls of ``marked``, ``said``, ``counted``, and of methods of a language."""
    for each in ast.walk(tree):
        if not isinstance(each, ast.Call):
            continue
        name = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
        words = [arg.value for arg in each.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if name == "counted" and len(words) == 2:
            yield words[0], words[1]
        elif name == "plural" and words and isinstance(each.func, ast.Attribute):
            yield message_of(*words)
        elif words and (name in ("marked", "said") or (name == "text" and "language" in ast.unparse(each.func))):
            yield words[0]


def labels() -> Iterator[str]:
    """The labels of the fields of all configurations and rules."""
    schemas = [each.configurations.schema() for each in make_formats(Config()).values()]
    for schema in (*schemas, policy.EDITOR.schema, retention.EDITOR.schema, retention.WHOLE):
        for each in schema["$defs"].values():
            yield from (label_of(key) for key in each.get("properties", ()) if not key.startswith("x_"))


def update(path: Path) -> None:
    """Take over the messages of now into a catalog."""
    catalog = _read(path)
    template = Catalog(fuzzy=False)
    for each in messages():
        template.add(each)
    catalog.update(template, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    _write(path, catalog)


def fill(path: Path, translations: Mapping[str, Any]) -> list[str]:
    """Take translations over; returns those whose message is not there."""
    catalog, unknown = _read(path), []
    for text, translation in translations.items():
        found = catalog.get(text)
        if found is None:
            unknown.append(text)
        else:
            found.string = tuple(translation) if isinstance(translation, list) else translation
            found.flags.discard("fuzzy")
    _write(path, catalog)
    return unknown


def _read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parents[1].name)


def _write(path: Path, catalog: Catalog) -> None:
    """Write a catalog without dates and places in the source, so that two changes of it seldom meet."""
    head, _, _ = path.read_text("utf-8").partition("\n\n")
    for each in catalog:
        each.flags -= {"python-format"}  # places are filled one by one, see ``languages.py``
        each.locations = []
    with BytesIO() as written:
        write_po(written, catalog, width=WIDTH, no_location=True, omit_header=True)
        path.write_text(f"{head}\n\n{written.getvalue().decode().strip()}\n", "utf-8")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="bin/languages", description="Update the catalogs of the console.")
    parser.add_argument("--fill", nargs=2, metavar=("LANGUAGE", "FILE"), help="take translations from a file")
    parser.add_argument("--open", metavar="LANGUAGE", help="list the messages without a translation")
    chosen = parser.parse_args()
    if chosen.fill:
        unknown = fill(CATALOGS[chosen.fill[0]], json.loads(Path(chosen.fill[1]).read_text()))
        print(*(f"no such message: {each!r}" for each in unknown), sep="\n")
    elif chosen.open:
        print(
            *(
                json.dumps(each.id, ensure_ascii=False)
                for each in _read(CATALOGS[chosen.open])
                if not each.string or each.fuzzy
            ),
            sep="\n",
        )
    else:
        for path in CATALOGS.values():
            update(path)


if __name__ == "__main__":
    main()
