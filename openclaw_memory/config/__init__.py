"""Read the settings of a plug-in, and find those that nothing reads; `MemoryConfig` is at the top level."""

from openclaw_memory.config.checks import read_plugin_settings
from openclaw_memory.config.unread import find_unread_settings

__all__ = ["find_unread_settings", "read_plugin_settings"]
