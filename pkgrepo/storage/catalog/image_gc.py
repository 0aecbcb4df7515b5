"""What of an image nothing needs any more."""
