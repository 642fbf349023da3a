"""What must stay secret or must not be forged: the keys of encryption and signatures, and what is done with them."""
