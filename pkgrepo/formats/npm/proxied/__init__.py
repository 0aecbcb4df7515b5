"""Packages of upstream registries: from their documents to fragments like those of hosted packages."""
