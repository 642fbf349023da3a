"""Define the questions to the user about the memory, in five languages (data only)."""

from collections.abc import Mapping

# By language: the question before something is remembered, with what it is about and without, and before something is
# forgotten.
REMEMBER: Mapping[str, tuple[str, str]] = {
    "en": ("Should I remember this about: {entities}?", "Should I remember this?"),
    "nl": ("Zal ik dit onthouden over: {entities}?", "Zal ik dit onthouden?"),
    "de": ("Soll ich mir das merken zu: {entities}?", "Soll ich mir das merken?"),
    "fr": ("Dois-je retenir ceci au sujet de : {entities} ?", "Dois-je retenir ceci ?"),
    "es": ("¿Quieres que recuerde esto sobre: {entities}?", "¿Quieres que recuerde esto?"),
}
FORGET: Mapping[str, tuple[str, str]] = {
    "en": ("Should I forget these lines about: {entities}?", "Which lines should I forget?"),
    "nl": ("Zal ik deze regels vergeten over: {entities}?", "Welke regels zal ik vergeten?"),
    "de": ("Soll ich diese Zeilen vergessen zu: {entities}?", "Welche Zeilen soll ich vergessen?"),
    "fr": ("Dois-je oublier ces lignes au sujet de : {entities} ?", "Quelles lignes dois-je oublier ?"),
    "es": ("¿Quieres que olvide estas líneas sobre: {entities}?", "¿Qué líneas quieres que olvide?"),
}
