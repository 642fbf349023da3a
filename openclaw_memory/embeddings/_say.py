"""What is told to whoever runs a sync, beside its report: who gets the notes, and what takes whose place."""


def say(words: str) -> None:
    """One plain line, on stderr where nobody has set up logging."""
    import logging

    logging.getLogger("openclaw_memory").warning(words)
