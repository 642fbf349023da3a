"""Writes what these pages show of the code: the table of settings, and a search result as HTML and as pictures.

    python docs/make.py     # the pictures need the extra `docs`, and a Chromium

A test compares the texts with what the code makes now.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.checks import describe_type, read_range, read_types
from openclaw_memory.config.sections import SECTIONS

DOCS = Path(__file__).parent
NOTES = DOCS.parent / "openclaw_memory" / "data" / "demo"
QUESTION = "Where do the visitors from Valencia sleep?"

SETTINGS = """\
# Settings

Every setting with its default. Write it under `[defaults]` in a TOML file, or pass it to `MemoryConfig()`. The column
*OpenClaw's* has the value of `MemoryConfig.openclaw()` if it differs;
[older versions and `opencode()`](../explanation/differences.md#the-two-presets) have their own.

A number outside its range is clamped, with a notice. A wrong type or an unknown name is a `ConfigError`. A setting
without effect, such as `chunking.tokens` with `style = "headings"`, is a notice of `status`, `doctor` and `config`.

```toml
[defaults]
search.max_results = 6

# MemoryConfig.from_toml("settings.toml", agent="research")
[agents.research]
search.half_life_days = 30
```

"""

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>A search result</title>
<style>
body {{ margin: 0; background: #fff; color: #111; font: 14px/1.5 "Liberation Sans", Arial, sans-serif; }}
.openclaw-memory {{ width: 900px; padding: 4px 0; }}
table {{ width: 100%; border-collapse: collapse; }}
tbody tr {{ border-top: 1px solid #8884; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #131416; color: #cfd0d0; }} }}
code {{ font: 12.5px "Liberation Mono", monospace; }}
@media (max-width: 40em) {{
  .openclaw-memory {{ width: 358px; }}
  thead {{ display: none; }}
  tr {{ display: grid; grid-template-columns: auto 5em minmax(0, 1fr); padding: 4px 0; }}
  code {{ white-space: normal !important; }}
  td:last-child {{ grid-column: 1 / -1; }}
}}
</style>
</head>
<body>
{table}
</body>
</html>
"""


def settings() -> str:
    """The page of settings."""
    ours, theirs = MemoryConfig(), MemoryConfig.openclaw()
    return SETTINGS + "\n".join(_part(name, getattr(ours, name), getattr(theirs, name)) for name in SECTIONS)


def _part(name: str, ours: Any, theirs: Any) -> str:
    words, meanings = _described(type(ours))
    differs = ours != theirs
    rows = []
    for field, kind in read_types(type(ours)).items():
        default, other = getattr(ours, field), getattr(theirs, field)
        cells = [f"`{name}.{field}`", meanings[field], _values(kind), _toml(default)]
        rows.append([*cells, *([_toml(other) if other != default else ""] if differs else [])])
    head = ["Setting", "What it does", "Value", "Default", *(["OpenClaw's"] if differs else [])]
    table = "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in [head, ["---"] * len(head), *rows])
    return f"## {name}\n\n{words}\n\n{table}\n"


def _described(part: type[Any]) -> tuple[str, dict[str, str]]:
    """What a docstring says of the part, and of each of its settings."""
    words, _, attributes = inspect.cleandoc(part.__doc__ or "").partition("\n\nAttributes:\n")
    entries = re.split(r"^    (\w+): ", attributes, flags=re.MULTILINE)[1:]
    meanings = {name: " ".join(text.split()) for name, text in zip(entries[::2], entries[1::2], strict=True)}
    if unsaid := [name for name in read_types(part) if name not in meanings]:
        raise ValueError(f"`Attributes:` of {part.__name__} does not say what {', '.join(unsaid)} is")
    return words, meanings


def _values(kind: Any) -> str:
    if kind is Any:
        return "text or table; in Python also a function"
    words = describe_type(kind).removeprefix("a ")
    if words.startswith("one of "):
        return ", ".join(f"`{json.dumps(choice)}`" for choice in words.removeprefix("one of ").split(", "))
    if (limits := read_range(kind)) is not None:
        low, high = limits
        return f"{low:,} or more" if high >= 1 << 40 else f"{low:,} to {high:,}"
    special = {
        "list of rules": "list of tables: [Policies](../how-to/forgetting.md#never-store-or-mask)",
        "table of tables": "table for each provider",
    }
    return special.get(words.partition(",")[0], words)


def _toml(value: object) -> str:
    """A value as a TOML file has it; there is no word for None there: it is what is not set."""
    if value is None:
        return "not set"
    return f"`{json.dumps(list(value) if isinstance(value, tuple) else value)}`"


def search_result() -> str:
    """A page with the table of a search in the notes of the demonstration."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "notes"
        shutil.copytree(NOTES, workspace)
        with Memory.open(workspace) as memory:
            table = memory.search(QUESTION, max_results=2)._repr_html_()
    return PAGE.format(table=table)


def draw(page: Path, browser: str) -> None:
    """Pictures of the table of `page`, wide and narrow, in both schemes, with twice as many pixels as they show."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        for width, size in (("", 900), ("-narrow", 390)):
            for scheme in ("light", "dark"):
                view = {"width": size, "height": 800}
                shown = chromium.new_page(viewport=view, device_scale_factor=2, color_scheme=scheme)
                shown.goto(page.as_uri())
                picture = page.with_name(f"{page.stem}{width}{'-dark' if scheme == 'dark' else ''}.png")
                shown.locator(".openclaw-memory").screenshot(path=picture)
        chromium.close()


def main() -> None:
    """Write the texts, and the pictures where there is a browser."""
    (DOCS / "reference" / "settings.md").write_text(settings(), encoding="utf-8")
    page = DOCS / "images" / "search-result.html"
    page.write_text(search_result(), encoding="utf-8")
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("there is no chromium on the PATH: the pictures are as they were")
    draw(page, browser)


if __name__ == "__main__":
    main()
