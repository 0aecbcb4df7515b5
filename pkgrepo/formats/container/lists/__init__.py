"""Sorted and paged lists: tags, images, referrers."""
