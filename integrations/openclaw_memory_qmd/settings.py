"""Define the settings of the plug-in, `[plugins.qmd]`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

Mode: TypeAlias = Literal["search", "vsearch", "query"]


@dataclass(frozen=True, slots=True)
class QmdSettings:
    """Settings of QMD, `[plugins.qmd]`.

    Attributes:
        mode: The command of QMD that answers: `search` by keywords, all of which a note must hold, `vsearch` by
            vectors, `query` by both, with expansion and reranking; the latter two need models that QMD downloads.
        command: QMD's command: `["qmd"]`, or `["/opt/node22/bin/node", "/opt/qmd/node_modules/@tobilu/qmd/bin/qmd"]`.
        folder: Where the copies and QMD's index are kept; empty: in the user's data folder.
        update_minutes: How often QMD is handed the notes that have changed; 0: only at searches and syncs.
        timeout_seconds: How long an answer may take.
        update_timeout_seconds: How long an update or the embedding may take.
        server: Whether QMD runs as a server. Without one each search starts the program: slower, but no port is open.
    """

    mode: Mode = field(default="search", metadata={"choices": get_args(Mode)})
    command: tuple[str, ...] = ("qmd",)
    folder: str = ""
    update_minutes: float = field(default=5.0, metadata={"range": (0, 525_600)})
    timeout_seconds: float = field(default=10.0, metadata={"range": (0.1, 3600)})
    update_timeout_seconds: float = field(default=600.0, metadata={"range": (1, 86_400)})
    server: bool = True
