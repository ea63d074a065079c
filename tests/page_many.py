"""Writes many profiles into a folder, for a page of many jobs: `python -m tests.page_many 400 DIR`.

They are those of the examples, each under many names.
"""

import json
import sys
from itertools import cycle, islice
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def main(count: str, folder: str) -> None:
    """Write so many profiles."""
    sources = sorted([*EXAMPLES.glob("*.json"), *EXAMPLES.glob("hard/*.json")])
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for number, source in enumerate(islice(cycle(sources), int(count))):
        profile = json.loads(source.read_text(encoding="utf-8"))
        name = profile["job"]["name"] = f"{profile['job']['name']}-{number}"
        (target / f"{name}.json").write_text(json.dumps(profile), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
