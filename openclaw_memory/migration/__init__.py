"""Bring what another memory holds into this one: a pure plan of what goes where, then its application."""

from openclaw_memory.migration.applying import migrate
from openclaw_memory.types.migration import MigrationReport

__all__ = ["MigrationReport", "migrate"]
