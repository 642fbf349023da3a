"""Text as data: terms, stop words, secrets, fences and front matter. Pure functions, no I/O."""
