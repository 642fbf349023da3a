"""Look after a memory, within a budget of time."""

from openclaw_memory.heartbeat.heartbeat import Heartbeat, every

__all__ = ["Heartbeat", "every"]
