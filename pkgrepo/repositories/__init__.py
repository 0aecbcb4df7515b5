"""What all formats share: publishing and removing packages, search, the readable layout, and maintenance."""
