"""The licence that a text is."""

from __future__ import annotations

import pytest

from pkgrepo.archives.licence_texts import licence_of


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
        ("All rights reserved.", ""),
        ("", ""),
    ],
)
def test_licences(text: str, licence: str) -> None:
    assert licence_of(text) == licence
