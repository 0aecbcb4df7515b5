"""Projects of upstream indexes: pages become fragments like those of hosted projects, and files are kept."""
