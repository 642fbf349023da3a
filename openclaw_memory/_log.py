"""Warnings to the user of a program that no return value can carry."""


def warn(message: str) -> None:
    """Log one line, which Python shows on stderr where logging is not set up."""
    import logging

    from openclaw_memory._safe import clean

    logging.getLogger("openclaw_memory").warning("%s", clean(message))
