"""Projects of upstream indexes: from their pages to fragments like those of hosted projects, and files that are kept."""
