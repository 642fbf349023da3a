"""Answer the hooks of coding agents: recall when a message comes, keep what a compaction or an end would lose."""
