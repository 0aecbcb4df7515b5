"""Statistics: what a repository contains and how it is used, and how the whole server is used and is."""
