"""A publish document in: scanner -> envelope and tarball -> manifest -> release in the catalog."""
