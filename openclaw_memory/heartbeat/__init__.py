"""Look after a memory, within a budget of time."""

from openclaw_memory.heartbeat.heartbeat import every

__all__ = ["every"]
