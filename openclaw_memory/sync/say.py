"""What a sync tells whoever runs it, beside its report."""


def say(words: str) -> None:
    """One plain line, on stderr where nobody has set up logging."""
    import logging

    logging.getLogger("openclaw_memory").warning(words)
