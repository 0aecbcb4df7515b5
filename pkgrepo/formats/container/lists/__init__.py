"""Paged lists in bytewise order: tags of an image, images of the server, referrers of a manifest."""
