"""Answer the hooks of coding agents: recall for a message, and keep the conversation before a compaction or an end."""
