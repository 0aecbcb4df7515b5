"""Figures of a repository, counted when somebody asks."""
