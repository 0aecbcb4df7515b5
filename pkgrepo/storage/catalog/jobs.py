"""Jobs: what runs in the background, and how it ended."""
