"""What rules leave out and mask: the strictest that matches counts, and is named."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.config import MemoryConfig, PoliciesConfig, PolicyRule
from openclaw_memory.errors import ConfigError, PolicyError
from openclaw_memory.text.policies import About, Policies

RULES = (
    PolicyRule("tea is fine", "allowed", pattern="tea"),
    PolicyRule("pay", "masked", pattern=r"\d{5} euros"),
    PolicyRule("also pay", "masked", pattern="euros"),
    PolicyRule("codename", "never-store", pattern="(?i)falcon"),
    PolicyRule("also codename", "never-store", pattern="Falcon"),
    PolicyRule("delicate", "masked", sensitivity="high"),
    PolicyRule("health", "never-store", type="fact", key="health.*"),
    PolicyRule("pin", "never-store", pattern=r"\d{4}", key="pin.*"),
)
LOW, HIGH = About("fact", "editor.theme", "low"), About("fact", "editor.theme", "high")
HEALTH, PIN = About("fact", "health.knee", "high"), About("other", "pin.door", "low")


@pytest.mark.parametrize(
    ("text", "about", "action", "rule"),
    [
        ("nothing of note", None, "allowed", None),
        ("tea", None, "allowed", "tea is fine"),
        ("tea for 12345 euros", None, "masked", "pay"),
        ("a few euros", None, "masked", "also pay"),
        ("FALCON costs 12345 euros", None, "never-store", "codename"),
        ("Falcon", None, "never-store", "codename"),
        ("dark", LOW, "allowed", None),
        ("dark", HIGH, "masked", "delicate"),
        ("dark", HEALTH, "never-store", "health"),
        ("1234", PIN, "never-store", "pin"),
        ("door", PIN, "allowed", None),
        ("1234", None, "allowed", None),
    ],
)
def test_the_strictest_rule_that_matches_is_named_the_first_of_equals(text, about, action, rule):
    assert Policies(RULES).verdict(text, about) == (action, rule)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\ntwo\n", "one\ntwo\n"),
        ("one\nFalcon flies\nthree", "one\n\nthree"),
        ("she earns 12345 euros now", "she earns *** now"),
        ("12345 euros and Falcon\n12345 euros", "\n***"),
        ("Falcon", ""),
    ],
)
def test_lines_keep_their_numbers(text, shown):
    assert Policies(RULES).shown(text) == shown


def test_a_pattern_over_several_lines_takes_all_of_them():
    policies = Policies((PolicyRule("key", "never-store", pattern=r"BEGIN[^$]*END"),))
    assert policies.shown("a\nx BEGIN\nmiddle\nEND y\nb") == "a\n\n\n\nb"


def test_what_remains_is_looked_at_again():
    rules = (PolicyRule("pair", "never-store", pattern=r"a\s+b"), PolicyRule("word", "never-store", pattern="word"))
    assert Policies(rules).shown("a\nword\nb").strip() == ""


@given(st.text(alphabet="aAbfFlLcCoOnN 01\nıſK", max_size=60))
def test_what_never_store_matches_never_comes_out(text):
    patterns = ("(?i)ac", "b0", r"^n\b", r"fa\s+l", "(?i)os")
    policies = Policies(
        (
            *(PolicyRule(pattern, "never-store", pattern=pattern) for pattern in patterns),
            PolicyRule("mask", "masked", pattern="a1+"),
        )
    )
    shown = policies.shown(text)
    assert shown.count("\n") == text.count("\n")
    assert not [pattern for pattern in patterns if re.search(pattern, shown, re.MULTILINE)]
    assert policies.shown(shown) == shown
    if all(re.search(pattern, text, re.MULTILINE) is None for pattern in patterns):
        assert policies.verdict(text).action != "never-store"


FORMS = {
    "(?i)Pay|Wage: ": "WAGE: ", "(?i)k1": "\u212a1", "(?i)sik": "\u017fik", "(?i)\u017fik": "SIK", "(foo|bar)*c": "c", "(a|s)k": "ak", "ab+c": "abbc",
    "(cat|dog)s|[ab]": "b", r"[abc]def(g|h)*": "bdef", r"\(at\)": "(at)", r"x\x41y": "xAy", "a(?=bc)b": "abc",
    "a{0,3}bc": "bc", "cat|dog": "a dog", "colou?r": "color",
}  # fmt: skip


def test_a_rule_of_any_form_hides_what_it_matches():
    for pattern, text in FORMS.items():
        assert Policies((PolicyRule("form", "never-store", pattern=pattern),)).shown(text) == "", pattern


def test_a_refusal_names_the_rule_and_not_the_text():
    with pytest.raises(PolicyError, match="'codename'") as caught:
        Policies(RULES).check(None, "the falcon lands at nine")
    assert caught.value.rule == "codename"
    assert "lands" not in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"action": "masked", "pattern": "a"}, "no name"),
        ({"name": "x", "action": "hidden", "pattern": "a"}, "'x' of policies.rules has no action"),
        ({"name": "x", "action": "masked"}, "'x' of policies.rules matches everything"),
        ({"name": "x", "action": "masked", "pattern": "(Falcon"}, "'x' of policies.rules is no regular expression"),
        ({"name": "x", "action": "masked", "pattern": "a*"}, "'x' of policies.rules matches an empty text"),
        ({"name": "x", "action": "masked", "pattern": "[a||b]"}, "later versions of Python"),
        ({"name": "x", "action": "masked", "type": "notes"}, "type of the rule 'x'"),
        ({"name": "x", "action": "masked", "words": "a"}, "unknown key 'words'"),
    ],
)
def test_a_wrong_rule_is_named(rule, message):
    with pytest.raises(ConfigError, match=message) as caught:
        PoliciesConfig(rules=(rule,))
    assert "Falcon" not in str(caught.value)


def test_rules_are_read_from_toml(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(
        '[[defaults.policies.rules]]\nname = "pay"\naction = "masked"\npattern = "euros"\n', encoding="utf-8"
    )
    assert MemoryConfig.from_toml(file).policies.rules == (PolicyRule("pay", "masked", pattern="euros"),)


ACCENTED = ("Rene\u0301e's cafe\u0301", "Ren\u00e9e's caf\u00e9")


@pytest.mark.parametrize("pattern", ACCENTED)
@pytest.mark.parametrize("text", ACCENTED)
def test_an_accent_that_is_parted_from_its_letter_hides_nothing(text, pattern):
    policies = Policies((PolicyRule("place", "never-store", pattern=pattern),))
    assert policies.shown(f"one\n{text} opens\nthree") == "one\n\nthree"
    assert policies.named(policies.left_out(text)) == ["place"]
    with pytest.raises(PolicyError, match="place"):
        policies.check(None, text)
    assert Policies((PolicyRule("place", "masked", pattern=pattern),)).shown(text) == "***"
    assert Policies((PolicyRule("of", "masked", key=f"{pattern}*"),)).verdict("tea", About("fact", text, "low")).rule


def test_lines_that_no_rule_matches_keep_their_accents_as_they_are():
    text = "cafe\u0301\ncafe\u0301 Falcon\ncre\u0300me"
    assert Policies(RULES).shown(text) == "cafe\u0301\n\ncre\u0300me"
    assert Policies(RULES).shown(plain := "cafe\u0301\ncre\u0300me") is plain


def test_rules_that_change_nothing_have_no_digest():
    assert not Policies((RULES[0],))
    assert Policies(RULES).digest == Policies(RULES[::-1]).digest != Policies(RULES[1:3]).digest
