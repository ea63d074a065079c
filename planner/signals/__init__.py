"""The numbers and words that rules and actions look at, each derived in one place."""
