"""Work on the caches of proxy repositories beside answering clients: checks of upstreams, purges, limits."""
