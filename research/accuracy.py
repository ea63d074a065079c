"""Scores the predictions, and writes the page and what ships: `python -m research.accuracy DATA`.

DATA is a folder with the data sets, which are not ours to pass on. `--page FILE` writes
docs/accuracy.md, `--scores FILE` the figures that `gpucost accuracy` prints.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from planner.models.document import encode
from pricing.errors import InputError
from research.document import document, page
from research.report import evaluate


def main(arguments: Sequence[str] | None = None) -> int:
    """Score and write; return 0, or 2 where the data are not all there."""
    parser = argparse.ArgumentParser(prog="python -m research.accuracy", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--page", type=Path, metavar="FILE")
    parser.add_argument("--scores", type=Path, metavar="FILE")
    asked = parser.parse_args(arguments)
    try:
        sections = evaluate(asked.data)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if asked.page is not None:
        asked.page.write_text(page(sections), encoding="utf-8")
    text = f"{json.dumps(encode(document(sections)), indent=1, ensure_ascii=False)}\n"
    if asked.scores is not None:
        asked.scores.write_text(text, encoding="utf-8")
    if asked.page is None and asked.scores is None:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
