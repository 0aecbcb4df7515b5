-- Whether an image was last pushed by its name alone, without storage and repository: lists name it as its clients do.
ALTER TABLE package ADD COLUMN alone INTEGER NOT NULL DEFAULT 0;
