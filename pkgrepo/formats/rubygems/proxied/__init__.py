"""
Gems of upstreams: what is requested and how gems are stored (``upstream``), the parts that documents are made into
(``normaliser``), and the lists that proxies and virtual repositories show (``merged_lists``, ``derived_lists``).
"""
