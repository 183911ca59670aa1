"""Selected pairings become dialogues with labelled utterances (DEMO section 3.2, dialogue generation)."""
