"""Settings of a memory, their presets and checks; `MemoryConfig` is at the top level."""

from openclaw_memory.config.checks import read_plugin_settings

__all__ = ["read_plugin_settings"]
