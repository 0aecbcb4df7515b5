"""Commands on repositories: their settings and jobs, replication, uploads, publishers, and what changed in them."""
