"""
Gems of upstreams: what is asked (``questions``), the parts that answers are made into (``normaliser``), how a gem is
kept (``releases``), and the lists that proxies and virtual repositories show (``merged_versions``).
"""
