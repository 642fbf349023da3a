"""Read the finish reason of a reply, and recognise replies that were cut off."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# The field of the reason: OpenAI and most others, Anthropic, Amazon Bedrock, Ollama, Google.
_FIELDS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "finishReason")
# Where a provider's own response holds the fields above.
_CHOICES = ("choices", "candidates")
_CUT_OFF = re.compile(
    r"length|max.*token|exceeded|incomplete"  # a limit of tokens, or of the window
    r"|filter|safety|refusal|guardrail|blocklist|prohibited|recitation|spii|toxic"  # a filter
    r"|malformed|error",
    re.IGNORECASE,
)


def read_finish_reason(about: Iterable[object]) -> str:
    """Return the finish reason in the metadata of a reply; "" if there is none.

    Args:
        about: Mappings or objects as providers and frameworks return them. The first reason counts.
    """
    for report in about:
        reasons = [_read_field(report, name) for name in _FIELDS]
        reasons.append(_read_field(_read_field(report, "incomplete_details"), "reason"))  # OpenAI's Responses API
        if reason := next((text for reason in reasons if (text := _to_text(reason))), ""):
            return reason
        for name in _CHOICES:
            choices = _read_field(report, name)
            if isinstance(choices, list | tuple) and choices and (reason := read_finish_reason(choices[:1])):
                return reason
    return ""


def is_cut_off(finish_reason: str) -> bool:
    """Return whether a reply with this finish reason ended early: at a limit of tokens, by a filter or by an error."""
    return _CUT_OFF.search(finish_reason) is not None


def _read_field(about: object, name: str) -> object:
    return about.get(name) if isinstance(about, Mapping) else getattr(about, name, None)


def _to_text(reason: object) -> str:
    """Return a reason as text: providers' packages have texts and enumerations."""
    name = reason if isinstance(reason, str) else getattr(reason, "name", "")
    return name if isinstance(name, str) else ""
