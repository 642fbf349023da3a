"""The published texts that the model is trained on: where they come from, under which licence, and how they are read.

Every text belongs to a group: the same thing said in one or several languages, English always among them.
"""

from __future__ import annotations

import html
import json
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

# The languages that the paraphrase check asks in; the others are learned from what is translated into them as well.
LANGUAGES = ("en", "nl", "de", "fr", "es")
EVERY_LANGUAGE = (*LANGUAGES, "it", "pt", "pl", "zh", "ja", "ko")
CODES = {"zh": "zh-Hans"}  # where Home Assistant has another code

MAX_CHARS = 400


class Group(NamedTuple):
    """The same thing by language."""

    source: str
    texts: Mapping[str, str]


def wordnet(folder: Path) -> Iterator[Group]:
    """WordNet 3.0 (its own licence, permissive): the words of each synset, its definition, and its examples."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue
            fields, _, gloss = line.partition(" | ")
            columns = fields.split(" ")
            lemmas = [
                re.sub(r"\(.*\)$", "", word).replace("_", " ") for word in columns[4 : 4 + 2 * int(columns[3], 16) : 2]
            ]
            definition, *examples = re.split(r";\s*(?=\")", gloss.strip())
            yield Group("wordnet", {"en": ", ".join(lemmas)})
            yield Group("wordnet", {"en": _cut(definition)})
            for example in examples:
                said = example.strip().strip('"').partition('"')[0]
                if len(said.split()) >= 3:
                    yield Group("wordnet", {"en": _cut(said)})


def home_assistant(wheel: Path, frontend: Path) -> Iterator[Group]:
    """The words of Home Assistant (Apache-2.0) in its components and its frontend, by language."""
    by_language = {language: _said(wheel, frontend, CODES.get(language, language)) for language in EVERY_LANGUAGE}
    seen: set[str] = set()
    for key in by_language["en"]:
        texts = {language: _prose(said[key]) for language, said in by_language.items() if key in said}
        if texts["en"].lower() in seen or len(texts["en"]) < 4:
            continue
        seen.add(texts["en"].lower())
        # What nobody translated stands there in English.
        yield Group(
            "home assistant",
            {language: text for language, text in texts.items() if language == "en" or (text and text != texts["en"])},
        )


def places(archive: Path) -> Iterator[Group]:
    """The presets of OpenStreetMap's id-tagging-schema (ISC): the name of a kind of place, and its synonyms."""
    with tarfile.open(archive) as tar:
        presets = {
            language: _read_json(tar, f"package/dist/translations/{language}.json")[language]["presets"]["presets"]
            for language in EVERY_LANGUAGE
            if language != "zh"
        }
    for key in presets["en"]:
        named = {language: each[key] for language, each in presets.items() if key in each and "name" in each[key]}
        if "en" not in named or "{" in named["en"]["name"]:
            continue
        yield Group("places", {language: each["name"] for language, each in named.items()})
        terms = {
            language: ", ".join(filter(None, [each.get("aliases", "").replace("\n", ", "), each.get("terms", "")]))
            for language, each in named.items()
        }
        terms = {language: _cut(text.replace(",", ", ").replace("  ", " ")) for language, text in terms.items() if text}
        if "en" in terms:
            yield Group("places", terms)


def signs(archive: Path) -> Iterator[Group]:
    """The annotations of the Unicode CLDR (Unicode-3.0): the name of each emoji, and the words that it is found by."""
    with tarfile.open(archive) as tar:
        known = {
            language: _read_json(tar, f"package/annotations/{language}/annotations.json")["annotations"]["annotations"]
            for language in EVERY_LANGUAGE
        }
    for sign in known["en"]:
        named = {language: each[sign] for language, each in known.items() if sign in each and "tts" in each[sign]}
        if "en" not in named:
            continue
        yield Group("signs", {language: each["tts"][0] for language, each in named.items()})
        words = {language: ", ".join(each["default"]) for language, each in named.items() if each.get("default")}
        if "en" in words:
            yield Group("signs", words)


def lexicon(paths: Iterable[Path]) -> Iterator[Group]:
    """The project's own lexicon (its licence): a concept a line, its words in each of LANGUAGES."""
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            columns = [column.strip() for column in line.split("|")]
            if len(columns) == len(LANGUAGES) and all(columns):
                yield Group("lexicon", dict(zip(LANGUAGES, columns, strict=True)))


def questions(paths: Iterable[Path]) -> Iterator[Group]:
    """The project's own facts and questions (its licence), in blocks of a line for each of LANGUAGES."""
    for path in paths:
        for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
            for line in block.strip().splitlines():
                language, _, rest = line.partition(":")
                fact, parted, question = rest.partition("||")
                if language.strip() in LANGUAGES and parted and fact.strip() and question.strip():
                    sides[0][language.strip()], sides[1][language.strip()] = fact.strip(), question.strip()
            if "en" in sides[0]:
                yield Group("questions", sides[1])
                yield Group("questions", sides[0])


def _said(wheel: Path, frontend: Path, code: str) -> dict[str, str]:
    """Home Assistant's messages in a language, by their places."""
    said: dict[str, str] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(f"/translations/{code}.json"):
                said |= _flat(json.loads(archive.read(name)), name.rpartition("/translations/")[0])
    with zipfile.ZipFile(frontend) as archive:
        for name in sorted(archive.namelist()):
            place, _, file = name.rpartition("/")
            if "/static/translations" in name and re.fullmatch(rf"{code}-[0-9a-f]{{32}}\.json", file):
                said |= _flat(json.loads(archive.read(name)), place)
    return said


def _read_json(tar: tarfile.TarFile, name: str) -> Any:
    file = tar.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is no file in {tar.name!r}")
    return json.load(file)


def _flat(tree: Mapping[str, Any], place: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{place}/{key}")
        elif isinstance(value, str):
            found[f"{place}/{key}"] = value
    return found


def _prose(text: str) -> str:
    """A message without its placeholders, references and marks of Markdown or HTML."""
    text = html.unescape(re.sub(r"<[^>]*>", " ", text))
    text = re.sub(r"\[%key:[^\]]*%\]|\{[^{}]*\}|https?://\S+|\]\([^)]*\)|[*_`#\[\]{}]", " ", text)
    return _cut(re.sub(r"\s+", " ", text).strip())


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARS else text[:MAX_CHARS].rpartition(" ")[0]
