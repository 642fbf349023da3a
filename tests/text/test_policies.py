"""Rules leave out and mask: the strictest that matches counts, and a refusal names it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory import MemoryConfig
from openclaw_memory.config.sections import PolicyRule
from openclaw_memory.errors import ConfigError, PolicyError
from openclaw_memory.text.policies import About, Policies

RULES = (
    PolicyRule("tea is fine", "allowed", pattern="tea"),
    PolicyRule("pay", "masked", pattern=r"\d{5} euros"),
    PolicyRule("codename", "never-store", pattern="(?i)falcon"),
    PolicyRule("also codename", "never-store", pattern="Falcon"),
    PolicyRule("delicate", "masked", sensitivity="high"),
    PolicyRule("health", "never-store", type="fact", key="health.*"),
    PolicyRule("pin", "never-store", pattern=r"\d{4}", key="pin.*"),
)
ACCENTED = ("Rene\u0301e's cafe\u0301", "Ren\u00e9e's caf\u00e9")


def never(*patterns):
    return Policies(PolicyRule(pattern, "never-store", pattern=pattern) for pattern in patterns)


@pytest.mark.parametrize(
    ("text", "about", "shown"),
    [
        ("one\ntea\n", None, "one\ntea\n"),
        ("one\nFalcon flies\nthree", None, "one\n\nthree"),
        ("she earns 12345 euros now", None, "she earns *** now"),
        ("12345 euros and Falcon\n12345 euros", None, "\n***"),
        ("dark", About("fact", "editor.theme", "low"), "dark"),
        ("dark", About("fact", "editor.theme", "high"), "***"),
        ("dark", About("fact", "health.knee", "low"), ""),
        ("1234", About("other", "pin.door", "low"), ""),
        ("1234", None, "1234"),
    ],
)
def test_lines_and_words_go_and_lines_keep_their_numbers(text, about, shown):
    assert Policies(RULES).mask(text, about) == shown


def test_a_pattern_over_several_lines_takes_all_of_them_and_what_remains_is_looked_at_again():
    assert never(r"BEGIN[^$]*END").mask("a\nx BEGIN\nmiddle\nEND y\nb") == "a\n\n\n\nb"
    assert never(r"a\s+b", "word").mask("a\nword\nb").strip() == ""


@given(st.text(alphabet="aAbfFlLcCoOnN 01\nıſK", max_size=60))
def test_what_never_store_matches_never_comes_out(text):
    patterns = ("(?i)ac", "b0", r"^n\b", r"fa\s+l", "(?i)os")
    rules = [PolicyRule(pattern, "never-store", pattern=pattern) for pattern in patterns]
    policies = Policies([*rules, PolicyRule("mask", "masked", pattern="a1+")])
    shown = policies.mask(text)
    assert shown.count("\n") == text.count("\n")
    assert not [pattern for pattern in patterns if re.search(pattern, shown, re.MULTILINE)]
    assert policies.mask(shown) == shown
    if all(re.search(pattern, text, re.MULTILINE) is None for pattern in patterns):
        policies.check(None, text)


def test_a_refusal_names_the_first_rule_and_not_the_text():
    with pytest.raises(PolicyError, match="'codename'") as caught:
        Policies(RULES).check(None, "the Falcon lands at nine")
    assert caught.value.rule == "codename"
    assert "lands" not in str(caught.value)
    assert Policies(RULES).list_matching_rules("the Falcon lands") == "'codename', 'also codename'"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"action": "masked", "pattern": "a"}, "no name"),
        ({"name": "x", "action": "hidden", "pattern": "a"}, r"policies\['x'\].action must be one of never-store"),
        ({"name": "x", "action": "masked"}, r"policies\['x'\] matches everything"),
        ({"name": "x", "action": "masked", "pattern": "(Falcon"}, r"policies\['x'\] is not a regular expression"),
        ({"name": "x", "action": "masked", "pattern": "[[a]"}, "not a regular expression: Possible nested set"),
        ({"name": "x", "action": "masked", "pattern": "a*"}, r"policies\['x'\] matches an empty text"),
    ],
)
def test_a_wrong_rule_is_named(rule, message):
    with pytest.raises(ConfigError, match=message) as caught:
        MemoryConfig(policies=(rule,))
    assert "Falcon" not in str(caught.value)


def test_rules_are_read_from_toml(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('[[defaults.policies]]\nname = "pay"\naction = "masked"\npattern = "euros"\n', encoding="utf-8")
    assert MemoryConfig.from_toml(file).policies == (PolicyRule("pay", "masked", pattern="euros"),)


@pytest.mark.parametrize("pattern", ACCENTED)
@pytest.mark.parametrize("text", ACCENTED)
def test_an_accent_that_is_parted_from_its_letter_hides_nothing(text, pattern):
    policies = never(pattern)
    assert policies.mask(f"one\n{text} opens\nthree") == "one\n\nthree"
    with pytest.raises(PolicyError):
        policies.check(None, text)
    assert Policies([PolicyRule("place", "masked", pattern=pattern)]).mask(text) == "***"
    assert Policies([PolicyRule("of", "masked", key=f"{pattern}*")]).mask("tea", About("fact", text, "low")) == "***"


def test_lines_that_no_rule_matches_keep_their_accents_as_they_are():
    assert Policies(RULES).mask("cafe\u0301\ncafe\u0301 Falcon\ncre\u0300me") == "cafe\u0301\n\ncre\u0300me"
    assert Policies(RULES).mask(plain := "cafe\u0301\ncre\u0300me") is plain


def test_rules_that_change_nothing_have_no_digest():
    assert not Policies(RULES[:1])
    assert Policies(RULES).digest == Policies(RULES[::-1]).digest != Policies(RULES[1:3]).digest
