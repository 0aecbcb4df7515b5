"""The upstreams of proxy repositories and what is cached of them: health, checks, purges, limits."""
