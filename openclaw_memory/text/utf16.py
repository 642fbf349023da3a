"""Lengths in UTF-16 code units, the unit of OpenClaw's limits."""


def measure_utf16(text: str) -> int:
    """Return the number of UTF-16 code units of the text: two for each character above U+FFFF, else one."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def truncate_utf16(text: str, max_units: int) -> str:
    """Return the longest beginning of at most `max_units` UTF-16 code units that cuts no character in two."""
    head = text[: max(0, max_units)]
    if head.isascii():
        return head
    units = 0
    for index, character in enumerate(head):
        units += 2 if character > "\uffff" else 1
        if units > max_units:
            return head[:index]
    return head
