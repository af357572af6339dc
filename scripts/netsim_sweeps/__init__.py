"""Used by scripts/sweep.py: sweep files, running their points, the table, and pictures of it."""
