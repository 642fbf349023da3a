"""Define the command that shows the intent of a message, by phrases alone."""

from __future__ import annotations

import click

from openclaw_memory.cli import Place, clean_line, show_json, show_note, with_place

_BY_PHRASES = "no model was asked: phrases decide, and on these alone nothing is suggested"


@click.command()
@click.argument("message", nargs=-1, required=True)
@with_place
def intent(place: Place, message: tuple[str, ...]) -> int:
    """Show the intent of a message, by phrases.

    MESSAGE is the text of a user; several words are joined. `-` reads it from standard input.

    Phrases in six languages decide here, and no model is asked. In an agent the model decides; phrases alone never lead
    to a suggestion. Nothing is written.

    Example: openclaw-memory intent --workspace notes "Remember that Anna eats no nuts."
    """
    from openclaw_memory_intent import detect_intent, is_worth_asking, read_settings, suggest

    text = place.get_text(message)
    with place.open() as memory:
        rules = read_settings(memory.config)
    wish = detect_intent(text, None, rules)
    suggested = suggest(wish, rules)
    is_worth_it = rules.enabled and is_worth_asking(text)
    if place.as_json:
        payload = None if suggested is None else suggested.to_dict()
        show_json({"worth_asking": is_worth_it, **wish.to_dict(), "by_rules": wish.by_rules, "suggestion": payload})
        return 0
    click.echo(f"intent        {click.style(wish.intent or 'none', fg='cyan', bold=True)}")
    click.echo(f"confidence    {wish.confidence:.2f}")
    click.echo(f"language      {clean_line(wish.language)}")
    click.echo(f"entities      {clean_line(', '.join(wish.entities)) or 'none'}")
    click.echo(f"worth asking  {'yes' if is_worth_it else 'no'}")
    click.echo(f"suggestion    {'none' if suggested is None else suggested.kind}")
    show_note(_BY_PHRASES if rules.enabled else "plugins.intent.enabled is false: no message is looked at")
    return 0
