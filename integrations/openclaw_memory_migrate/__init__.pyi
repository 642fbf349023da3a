from .migration import migrate as migrate
from .types import LeftOut as LeftOut, MigratedFile as MigratedFile, MigrationReport as MigrationReport
