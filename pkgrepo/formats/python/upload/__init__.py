"""A distribution in: upload form -> archive and core metadata -> release in the catalog."""
