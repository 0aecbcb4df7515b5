"""Pages about what is stored: repositories, packages, images, projects, stages and the trash; and feeds of them."""
