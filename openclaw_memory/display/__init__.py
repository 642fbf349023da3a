"""How results look in a notebook."""
