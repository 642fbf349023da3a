"""Define the settings of the plug-in, `[plugins.qmd]`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

Mode: TypeAlias = Literal["search", "vsearch", "query"]


class QmdSettings(Struct, frozen=True):
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

    mode: Mode = "search"
    command: tuple[str, ...] = ("qmd",)
    folder: str = ""
    update_minutes: Annotated[float, Meta(ge=0, le=525_600)] = 5.0
    timeout_seconds: Annotated[float, Meta(ge=0.1, le=3600)] = 10.0
    update_timeout_seconds: Annotated[float, Meta(ge=1, le=86_400)] = 600.0
    server: bool = True
