"""Find names and first lines that break the rules of docs/contributing/words.md."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from source_trees import nodes

ROOT = Path(__file__).parents[1]

# A value is a noun of the field: none of these says what it holds.
VAGUE = set(
    "found said one known told given wanted made lent kept held asked gone begun shown meant left_over of_it named noted "
    "chosen passed met due seen done ours others rest other these those it this that".split()
)
# A function is a verb in the imperative, or a question or conversion that starts with one of the last line.
VERBS = set(
    """
    abort accept acquire adapt add announce advance allow alternate annotate answer append apply ask assert assign attach await backoff begin bind
    boost bootstrap build cache calculate call cancel cast chain check choose chunk cite clamp classify clean clear close collect combine compact
    compare compile complete compose compress compute configure confirm connect consume convert copy count cover create cut decay decode decorate
    decrypt dedupe deduplicate delete derive describe detach detect diff digest disable discard discover dispatch display divide download draw drive
    drop dump edit embed emit enable encode encrypt end enforce ensure enter erase escape estimate evaluate evict exclude execute exit expand expire
    explain export extend extract fail feed fence fetch fill filter find finish fit fix flush flatten fold follow forget fork format freeze fuse gather generate
    get grade group grow guard handle hash hide highlight ignore import include index infer init inject insert inspect install intersect invalidate invoke
    iterate join judge keep launch lease leave limit link list listen load locate lock log look lower main make map mark mask match measure merge migrate
    mix move name narrow normalise normalize notify number observe obtain offer open order pack pad parse partition pass pick plan plot poll pop
    postpone prefix prepare prepend print probe process promote propose protect prune publish pull push put quantise quantize query quote raise rank rate read rebuild
    receive recall recompute record recover redact reembed redirect reduce refresh refuse register reject release reload remember remove rename render renew
    reopen repair repeat replace report request require rerank reseal reserve reset resolve respond restore resume retrieve retry return reuse rewrite
    roll rotate run sample save scale scan schedule score seal search see select send serve set settle share shift shorten show shrink shut sign skip
    snap sort split spread stamp start stem step stop store stream strip submit subscribe suggest summarise summarize sweep switch sync take tell
    terminate test tokenize touch train transform translate trim truncate try turn unescape union unlink unlock unpack unquote unseal unsubscribe
    update upsert use validate verify visit wait walk warm warn watch weigh widen wrap write yield
    visit is has can may should needs to from as on with before
    """.split()
)
ASYNC = re.compile(r"^a(?=(?:add|append|apply|ask|call|clear|close|delete|detect|edit|embed|flush|from|get|index|invoke|list|load|open|prepare|put|query|retrieve|run|save|search|set|settle|truncate|write))")  # fmt: skip
# What a framework, or a protocol of Python, calls its methods; and `observed`, which marks methods as `property` does.
FRAMEWORKS = set(
    """
    openclaw opencode
    before_model after_model abefore_model aafter_model before_agent after_agent abefore_agent aafter_agent awrap_model_call
    class_name abatch batch amove observed _repr_html_ do_POST capture_signals startup load_ipython_extension unload_ipython_extension status upgrade
    similarity_search similarity_search_with_score similarity_search_by_vector max_marginal_relevance_search
    max_marginal_relevance_search_by_vector custom_model_dump chat achat astream_chat acomplete astream_complete async_add
    """.split()
)
# The front door, whose names are fixed.
FRONT_DOOR = set("of for_agent heartbeat status upgrade snapshot snapshots memory_tools".split())
# A file is guessed from its name; these say no thing of the field.
VAGUE_FILES = set(
    "acting as_shown asking chance chosen edits exchange inside kept odd_files parts passing permitted places shadow shown "
    "stays vouched weak where wording settling applying permitted guards exact".split()
)
QUESTION = re.compile(r"^(?:what|which|whether|how|who|whose|why|when|where|of|in|from|by|with|without|once|until|that|this|it)\b", re.IGNORECASE)  # fmt: skip
RELATIVE = re.compile(r"\b(?:what|whose|whichever|by which|in which|of which|to which|of it|of them|is told|is asked|says)\b", re.IGNORECASE)  # fmt: skip


def sources() -> list[Path]:
    """List the Python files that ship."""
    return sorted(
        path for part in ("openclaw_memory", "adapters", "integrations") for path in (ROOT / part).rglob("*.py")
    )


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of a file whose names are ours to choose: no properties, dunders, fixtures or handlers."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
            if not re.search(
                r"property|setter|override|command|magic|group|tool\b|fixture|validator|overload", decorators
            ):
                yield node


def is_verb(name: str) -> bool:
    """Tell whether the name of a function starts with a verb in the imperative, or its asynchronous twin does."""
    first = ASYNC.sub("", name.strip("_").split("_")[0])
    return first in VERBS or name in FRAMEWORKS | FRONT_DOOR


def bound_names(path: Path) -> Iterator[str]:
    """Yield each name that a file assigns, or takes as a parameter."""
    for node in nodes(path):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def first_lines(path: Path) -> Iterator[str]:
    """Yield the first line of each docstring of a file."""
    for node in nodes(path):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and (text := ast.get_docstring(node)):
            yield text.partition("\n")[0]


@cache
def find_offenders() -> dict[str, Counter[str]]:
    """Count what breaks a rule: `values` and `functions` by name, `files` by stem, `first_lines` by their text."""
    offenders: dict[str, Counter[str]] = {kind: Counter() for kind in ("values", "functions", "files", "first_lines")}
    for path in sources():
        offenders["values"].update(name for name in bound_names(path) if name.strip("_") in VAGUE and name.strip("_"))
        offenders["functions"].update(node.name for node in functions(path) if not is_verb(node.name))
        offenders["files"].update([path.stem] if path.stem.strip("_") in VAGUE_FILES else [])
        offenders["first_lines"].update(
            line for line in first_lines(path) if QUESTION.match(line) or RELATIVE.search(re.sub("`[^`]*`", "", line))
        )
    return offenders
