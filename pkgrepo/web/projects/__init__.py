"""Projects: who belongs to them, and the package names that belong to them."""
