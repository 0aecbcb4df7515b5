"""How values of the API are written in columns and fields, by name, and how texts are read that become values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from pkgrepo.client.printer import ago, time_with_age
from pkgrepo.display import browser, number, plural, size
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import bytes_of

KINDS: Final = {"project": "project", "user": "users"}  # of places that are written with their kind, and their paths
FEW: Final = 3  # names that are written


def place_of(quota: Any) -> str:
    """The place of a quota as people write it."""
    name = quota["name"] or "server"
    return f"{quota['kind']}:{name}" if quota["kind"] in KINDS else name


def staged(stage: Any) -> str:
    """What a stage has, in a few words."""
    titles = [
        each["name"]
        if each["kind"] == "file"
        else f"{each['package']}{':' if each['kind'] == 'tag' else '@'}{each['name']}"
        for each in stage["content"]
    ]
    return _some(titles, stage["items"])


def _some(names: list[str], count: int) -> str:
    more = count - min(FEW, len(names))
    return ", ".join(names[:FEW]) + (f" and {more} more" if more > 0 else "")


def _used(what: str, show: Callable[[int], str]) -> Callable[[Any], str]:
    def text(quota: Any) -> str:
        limit = quota["limits"][what]
        return show(quota["usage"][what]) + ("" if limit is None else f" of {show(limit)}")

    return text


def _used_package(each: Any) -> str:
    return f"{each['name']}: {each['downloads']} downloads, {each['versions']} versions, {size(each['bytes'])}"


def _removed(entry: Any) -> str:
    if entry["kind"] == "repository":
        return "the repository"
    return f"{entry['package']} {_some(entry['names'], entry['items'])}"


def _counted(package: Any) -> str:
    flags = ", ".join(f"{count} {flag}" for flag, count in package["flags"].items() if count)
    return f"{package['versions']} ({flags})" if flags else str(package["versions"])


def _file(file: Any) -> str:
    digests = file["digests"]
    name = "sha256" if "sha256" in digests else next(iter(digests), "")
    return f"{file['name']} ({size(file['size'])})\n  {f'{name}:{digests[name]}' if name else ''}"


def _webhook(webhook: Any) -> str:
    if webhook["disabled_reason"]:
        return "switched off by the server"
    if not webhook["active"]:
        return "off"
    return "failing" if webhook["failing_since"] else "on"


def _claims(publisher: Any) -> str:
    claims = {**publisher["claims"], "aud": publisher["audience"], "environment": publisher["environment"]}
    given = {**claims, **publisher["claims"]}  # a claim of this name comes before the field
    texts = {name: value if isinstance(value, str) else ",".join(value) for name, value in given.items()}
    return " ".join(f"{name}={text}" for name, text in texts.items() if text)


def _members(project: Any) -> str:
    members = project["members"]
    return "you may not see them" if members is None else _lines("{name}: {role}")(members)


def _lines(template: str) -> Callable[[list[Any]], str]:
    return lambda records: "\n".join(template.format(**each) for each in records)


def _blocked(block: Any) -> str:
    what = " ".join(filter(None, (block["package"], block["versions"], *block["digests"])))
    known = "" if block["known"] is None else f" and {block['known']} that upstreams list"
    about = f"{block['stored']} stored versions{known}"
    return f"{what} is blocked in {block['repository']}, which is about {about}; the id of the block is {block['id']}"


def _harmless(findings: Any) -> str:
    """The sentence for an empty list of vulnerabilities."""
    whole = findings["checked"] and not findings["package"] and not findings["severity"]
    return "no stored version has a known vulnerability" if whole else "nothing was found"


def _addresses(found: Any) -> list[Any]:
    """The host names and path prefixes of repositories, of the API and of the file."""
    rows = []
    for source, tables in (("API", found), ("file", found["configured"])):
        for name, path in (tables["hosts"] | tables["aliases"]).items():
            shown = f"{path} (there is none)" if name in found["missing"] else path
            rows.append({"name": name, "repository": shown, "source": source})
    return sorted(rows, key=lambda row: row["name"])


def _replicated(found: Any) -> str:
    lag_s, events, failed = found["lag_seconds"], found["lag_events"], found["failed_tasks"]
    left = f"has {plural(events, 'thing')} to do" if events else "has nothing left to do"
    tried = f", of which {plural(failed, 'task')} failed" if failed else ""
    behind = f", {round(lag_s)} s behind" if lag_s else ""
    return f"{found['repository']} is {found['state']}: {found['source']}; it {left}{tried}{behind}"


def _promoted(done: Any) -> str:
    what, to, trash = f"{done['package']} {done['version']}", done["to"], done["trash"]
    if not done["changed"] and not done["move"]:
        return f"{to} had {what} already: nothing was changed"
    later = "" if trash is None else f'; "pkgrepo trash restore {trash}" puts it back there, too'
    verb = "moved" if done["move"] else "copied"
    return f"{verb} {what} from {done['repository']} to {to}, {plural(len(done['published']), 'file')}{later}"


def _compared(found: Any) -> list[str] | str:
    """The files that differ in two versions."""
    files = [f"{each['change']:8} {each['name']}" for each in found["files"]]
    if found["archives"] is None:
        return ["there are no archives of the same kind that could be compared"]
    if not found["complete"] or found["file_count"] > len(files):
        files.append("there may be more")
    return files or "are the same"


def _changes(texts: list[Any]) -> list[str] | str:
    """A line for each text that was added, removed or changed."""
    return [f"{each['name']}: {each['before'] or 'none'} -> {each['after'] or 'none'}" for each in texts] or (
        "are the same"
    )


# How values are written; those of whole records are written without a field before them.
FORMS: Final[Mapping[str, Callable[[Any], object]]] = {
    "ago": ago,
    "time": time_with_age,
    "browser": browser,
    "joined": "; ".join,
    "listed": ", ".join,
    "spaced": " ".join,
    "lines": "\n".join,
    "number": lambda value: value,
    "size": size,
    "ms": lambda value: f"{value} ms",
    "caches": lambda counts: ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in counts.items()),
    "problems": lambda found: "; ".join(f"{name}: {problem}" for name, problem in sorted(found.items())),
    "unchecked": lambda names: (
        f"not checked, since no database has their packages: {', '.join(names)}" if names else ""
    ),
    "indented": lambda texts: [f"  {each}" for each in texts],
    "used": lambda packages: "\n".join(map(_used_package, packages)),
    "job": lambda job: f"{job['state']}, {time_with_age(job['created_at'])}",
    "changes": _changes,
    "restorable": '; "pkgrepo trash restore {}" restores it'.format,
    "counts": lambda counts: ", ".join(f"{name} {count}" for name, count in sorted(counts.items())),
    "links": lambda links: "\n".join(f"{label}: {url}" for label, url in links.items()),
    "files": lambda files: "\n".join(map(_file, files)),
    "owner": lambda owner: f"group {owner['name']}" if owner["kind"] == "group" else owner["name"],
    "bindings": _lines("{repository}: {pattern}"),
    # of records
    "place": place_of,
    "bytes": _used("bytes", size),
    "packages": _used("packages", number),
    "versions": _used("versions", number),
    "staged": staged,
    "removed": _removed,
    "where": lambda each: f"{each['package']} in {each['repository']}" if each["package"] else each["repository"],
    "state": lambda each: f"{each['state']}: {each['reason']}" if each["reason"] else each["state"],
    "counted": _counted,
    "webhook": _webhook,
    "claims": _claims,
    "members": _members,
    "because": lambda rights: rights["denied"] or "; ".join(each["source"] for each in rights["sources"]),
    "quota": lambda each: "" if (most := each["quota"]) is None else f"{size(each['usage_bytes'])} of {size(most)}",
    "blocked": _blocked,
    "places": lambda each: ", ".join(f"{one['repository']} {_some(one['versions'], one['count'])}" for one in each),
    "affected": lambda each: _some(each["versions"], each["affected_versions"]),
    "harmless": _harmless,
    "addresses": _addresses,
    "replicated": _replicated,
    "promoted": _promoted,
    "compared": _compared,
    "licences": lambda each: " -> ".join(dict.fromkeys((each["license_before"], each["license_after"]))),
    "untaken": lambda sent: "" if sent["state"] == "delivered" else "the receiver did not take the event",
}
RIGHT: Final = ("number", "size")  # forms of columns that are aligned to the right


def read_size(option: str, text: str) -> int | None:
    """A number of bytes as people write it, None for "none". :raises Invalid: it is no size"""
    return _limit(option, text, bytes_of(text))


def read_count(option: str, text: str) -> int | None:
    """A number as people write it, None for "none". :raises Invalid: it is none"""
    return _limit(option, text, int(text) if text.isascii() and text.isdigit() else None)


def read_time(option: str, text: str) -> str:
    """A time for the API, of a date (the end of that day) or a time in UTC. :raises Invalid: it is neither"""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(
            f"--{option} takes a date such as 2026-12-31 (its end), or a time such as 2026-12-31T12:00Z, not {text!r}"
        ) from None
    if len(text) <= len("2026-12-31"):
        at = at.replace(hour=23, minute=59, second=59)
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).isoformat()


def _limit(option: str, text: str, found: float | None) -> int | None:
    if text == "none":
        return None
    if found is None or found != int(found):
        raise Invalid(f"--{option} takes a number or none, not {text!r}")
    return int(found)


def _read_pairs(form: str, _option: str, texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for each in texts:
        name, equals, value = each.partition("=")
        if not equals:
            raise Invalid(f"{each!r} is not written as {form}")
        found[name] = value
    return found


# How the text of an option is read, and what the help calls it.
READ: Final[Mapping[str, tuple[str, Callable[[str, Any], Any]]]] = {
    "size": ("SIZE", read_size),
    "count": ("NUMBER", read_count),
    "time": ("DATE", read_time),
    **{
        name: (form, partial(_read_pairs, form))
        for name, form in (("claims", "NAME=PATTERN"), ("addresses", "FORMAT=URL"))
    },
}
