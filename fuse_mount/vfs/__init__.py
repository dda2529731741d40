"""What the directory means: no kernel, no protocol; tested with plain pytest."""
