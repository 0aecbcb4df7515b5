"""
Imports: packages of other registries and of folders, with their times, publishers, yanks, deprecations and tags.

What reads a registry by the protocol of its clients, or a folder of packages, lies in the format (``Format.imported``),
and the engine that takes in what a source has in ``pkgrepo.gateway.imported``. Here are sources that know more: other
servers by their API (``servers``) and air-gap bundles (``bundles``); plans of the repositories and rights of other
servers (``plans``, ``plan_rights``); all kinds of sources (``kinds``), and what starts imports as jobs (``importers``).
"""
