"""Look after a memory, within a budget of time."""

from openclaw_memory.heartbeat.heartbeat import Heartbeat, every
from openclaw_memory.types.results import HeartbeatReport

__all__ = ["Heartbeat", "HeartbeatReport", "every"]
