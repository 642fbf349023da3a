"""What is told to whoever runs the program, beside what a call returns: one line, in the log."""


def say(words: str) -> None:
    """One plain line, on stderr where nobody has set up logging."""
    import logging

    logging.getLogger("openclaw_memory").warning(words)
