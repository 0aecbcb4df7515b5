"""The licence that a text is, which files have one, and which licences are new."""

from __future__ import annotations

import pytest

from pkgrepo.archives.licence_texts import (
    LONGEST_NAME,
    UNKNOWN,
    licence_files,
    licence_of,
    licences_declared,
    licences_of_file,
    names_in,
    new_licences,
)


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("Copyright (c) 2024\n\nPermission is hereby granted, free of charge, to any person obtaining a copy", "MIT"),
        ("                  Apache License\n            Version 2.0, January 2004\n", "Apache-2.0"),
        ("Redistribution and use in source and binary forms, with or without modification", "BSD-2-Clause"),
        (
            "Redistribution and use in source and binary forms ... Neither the name of X nor the names of its\n"
            "contributors may be used to endorse or promote products derived from this software",
            "BSD-3-Clause",
        ),
        ("GNU LESSER GENERAL PUBLIC LICENSE\n   Version 2.1, February 1999", "LGPL-2.1"),
        ("GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007", "GPL-3.0"),
        ("// SPDX-License-Identifier: MIT OR Apache-2.0\n", "MIT OR Apache-2.0"),
        ("Business Source License 1.1\n\nChange License: Apache License, Version 2.0\n", "BUSL-1.1"),
        ("Functional Source License, Version 1.1, MIT Future License", "FSL-1.1-MIT"),
        ("Server Side Public License\nVersion 1, October 16, 2018", "SSPL-1.0"),
        ("Elastic License 2.0\n\n## Acceptance", "Elastic-2.0"),
        (
            '"Commons Clause" License Condition v1.0\n\nSoftware: X\nLicense: Apache License, Version 2.0',
            "LicenseRef-Commons-Clause",
        ),
        ("All rights reserved.", ""),
        ("", ""),
    ],
)
def test_licences(text: str, licence: str) -> None:
    assert licence_of(text) == licence


@pytest.mark.parametrize(
    ("name", "has_text"),
    [
        *((each, True) for each in ("LICENSE", "LICENCE.txt", "license.md", "LICENSE-MIT", "MIT-LICENSE", "UNLICENSE")),
        *((each, True) for each in ("COPYING", "COPYING.LESSER", "NOTICE", "LICENSES.txt", "LICENSE.APACHE2")),
        *((each, False) for each in ("license.js", "license.d.ts", "LICENSE.html", "licenses.json", "licensed.rb")),
        *((each, False) for each in ("a/LICENSE", "README", "copying.c", "license/index.js", "LICENSE/MIT")),
    ],
)
def test_files_with_a_licence_are_told_by_their_names(name: str, has_text: bool) -> None:
    assert bool(licence_files("^").search(name)) == has_text
    assert bool(licence_files("^[^/]+/").search(f"top/{name}")) == has_text


MIT = b"Permission is hereby granted, free of charge, to any person obtaining a copy"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("LICENSE", MIT, ["MIT"]),
        ("LICENSE", b"SPDX-License-Identifier: MIT OR Apache-2.0", ["MIT", "Apache-2.0"]),
        ("LICENSE", b"You may not.", [UNKNOWN]),
        ("LICENSE", b"\xff\xfe\x00", [UNKNOWN]),
        ("LICENSE", b" \n", []),
        ("a/NOTICE", b"This has parts of others.", []),
        ("a/NOTICE", MIT, ["MIT"]),
    ],
)
def test_a_file_says_the_licence_that_its_text_is(name: str, data: bytes, said: list[str]) -> None:
    assert [*licences_of_file(name, data)] == said


def test_what_is_declared_may_be_a_name_an_expression_or_a_text() -> None:
    declared = ["MIT", "(BSD-3-Clause OR Apache-2.0)", MIT.decode() + "\n\nmore", "x" * (LONGEST_NAME + 1)]
    assert [*licences_declared(declared)] == ["MIT", "BSD-3-Clause", "Apache-2.0", "MIT", UNKNOWN]


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        (["MIT"], ["MIT"], []),
        (["MIT"], ["BUSL-1.1", "MIT"], ["BUSL-1.1"]),
        (["MIT"], ["LicenseRef-unknown"], ["LicenseRef-unknown"]),
        (["MIT", "Apache-2.0"], ["MIT"], []),
        (["MIT License"], ["MIT"], []),
        (["Apache License, Version 2.0"], ["Apache 2.0", "Apache-2.0"], []),
        (["GPL-3.0"], ["GPL-3.0-only"], []),
        (["GPL-2.0"], ["GPL-3.0"], ["GPL-3.0"]),
        (["MIT"], ["SEE LICENSE IN LICENSE.md"], ["SEE LICENSE IN LICENSE.md"]),
        ([], ["BUSL-1.1"], []),
        (["MIT"], [], []),
    ],
)
def test_another_licence_is_new_and_another_spelling_is_not(
    before: list[str], after: list[str], new: list[str]
) -> None:
    assert new_licences(before, after) == new


def test_any_number_of_blanks_separates_names_in_time_that_is_proportional() -> None:
    blanks = " " * 500_000  # a pattern that looks for the end of them from each of them takes half an hour
    assert names_in(f"MIT{blanks}OR{blanks}Apache{blanks}2.0{blanks}") == ["MIT", "Apache 2.0"]
    assert names_in(f"\tMIT\n AND\tISC;{blanks}") == ["MIT", "ISC"]
    text = f"SPDX-License-Identifier: MIT{blanks[:60_000]}OR ISC"
    assert [*licences_of_file("LICENSE", text.encode())] == ["MIT", "ISC"]
