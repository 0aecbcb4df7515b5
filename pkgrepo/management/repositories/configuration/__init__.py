"""Configurations of repositories: reading and replacing them, and the description of their keys."""
