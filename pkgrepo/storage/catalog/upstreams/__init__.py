"""Queries and write commands for what proxy repositories keep of their upstreams."""
