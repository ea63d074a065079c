"""What a reader of the profile should know about the measuring, each thing said once."""

from collections import defaultdict


class Notes:
    """Sentences, and what devices lack, gathered over the devices.

    Attributes:
        sentences: said as they are, in order, each once.
    """

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self._lacking: dict[tuple[str, str], list[str]] = defaultdict(list)

    def say(self, sentence: str) -> None:
        """Add a sentence unless it was said."""
        if sentence not in self.sentences:
            self.sentences.append(sentence)

    def lacks(self, device: str, what: str, why: str) -> None:
        """Add that a device gives no reading of something, and why."""
        known = self._lacking[what, why]
        if device not in known:
            known.append(device)

    def all(self) -> list[str]:
        """Return every note; devices that lack the same share a sentence."""
        lacking = [
            f"{', '.join(devices)}: no {what}: {why}."
            for (what, why), devices in self._lacking.items()
        ]
        return [*self.sentences, *lacking]
