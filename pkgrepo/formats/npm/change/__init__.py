"""Changes of what was published: deprecate, tag, unpublish, owners, stars, access."""
