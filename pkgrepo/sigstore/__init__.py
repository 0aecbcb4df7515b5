"""
Verifies Sigstore bundles: which pipeline signed a statement, and that a public log has the signature.

``bundles`` reads what attestations consist of, ``roots`` the keys and certificates that are trusted; ``certificates``
and ``transparency``, with ``timestamps``, check the two halves of the evidence, and ``verification`` is what other
rooms call. No network is used: all that is needed is in the bundle and in the trusted root.
"""
