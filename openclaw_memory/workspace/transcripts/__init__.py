"""Session transcripts: read as text with a map of lines, and written as JSONL."""
