"""Define the settings of this plug-in, `[plugins.intent]`."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from openclaw_memory import MemoryConfig
from openclaw_memory.config import read_plugin_settings
from openclaw_memory.errors import ConfigError

NAME = "intent"


class IntentConfig(Struct, frozen=True):
    """Set which messages are looked at, and how sure a model has to be.

    Attributes:
        enabled: Whether messages are looked at; if not, a message wants nothing, and no model is asked.
        languages: The ISO 639-1 codes of the languages that users write in.
        confidence_threshold: Something is suggested where the model is more confident, 0..1.
        deadline_seconds: How long the model has for its answer, a second try included, 0.01..600; then rules decide,
            on which nothing is suggested.
    """

    enabled: bool = True
    languages: tuple[str, ...] = ("en", "nl", "de", "fr", "es")
    confidence_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.7
    deadline_seconds: Annotated[float, Meta(ge=0.01, le=600)] = 4.0


def read_settings(config: MemoryConfig) -> IntentConfig:
    """Read the settings of this plug-in from those of a memory.

    Raises:
        ConfigError: A key is unknown, or a value has a wrong type or is out of range.
    """
    return read_plugin_settings(config, NAME, IntentConfig)


def check_settings(settings: IntentConfig | None) -> IntentConfig:
    """Return the settings, the default ones for None.

    Raises:
        ConfigError: They are something else, or a value has a wrong type or is out of range.
    """
    if settings is None:
        return IntentConfig()
    if not isinstance(settings, IntentConfig):
        raise ConfigError(
            f"rules must be an IntentConfig, not a {type(settings).__name__}: read_settings(memory.config) returns one"
        )
    return read_settings(MemoryConfig(plugins={NAME: asdict(settings)}))
