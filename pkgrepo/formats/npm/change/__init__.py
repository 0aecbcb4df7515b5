"""
Changes of published packages: deprecate, tag, unpublish, owners, stars, access.

A document that npm writes back becomes a ``DocumentChange``, which ``commands`` applies in a transaction.
"""
