"""How large reports are and what they cost: markdown, comment, page and plan.json of 1 to 400 jobs.

Jobs are those of fleet_plan.py: the bundled examples in turns with other hours, load and memory, so
that no two measure the same. Each style is one command on the same plan.json; seconds are CPU of
the whole process, start included. A comment must stay under GitHub's 65,536 characters and the page
of one job at or under 500 KB: the exit code is 1 where one does not.

Usage: python benchmarks/report_sizes.py [JOBS]...
       JOBS are 1 4 7 40 400 where nothing is said
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fleet_plan import profiles
from same_bytes import DAY

COUNTS = (1, 4, 7, 40, 400)
STYLES = ("md", "github-comment", "html")
COMMENT_CHARACTERS = 65_536  # GitHub's limit
PAGE_BYTES = 500_000  # promised of one job with 15 options


def ran(words: Sequence[str], environ: dict[str, str]) -> float:
    """Run gpucost; return its seconds of CPU.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = (sys.executable, "-m", "gpucost", *words)
    subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(jobs: int) -> bool:
    """Print the row of so many jobs; return whether it keeps the limits."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "jobs").mkdir()
        (place / "settings.toml").touch()
        profiles(place / "jobs", jobs)
        environ = {
            **os.environ,
            "GPUCOST_CACHE_DIR": name,
            "GPUCOST_CONFIG": str(place / "settings.toml"),
            "GPUCOST_STATE_DIR": name,
        }
        plan = place / "plan.json"
        words = ["plan", str(place / "jobs"), "--as-of", DAY, "-q", "-o", str(plan)]
        cpu_s = {"plan": ran(words, environ)}
        for style in STYLES:
            words = ["report", str(plan), "--style", style, "-q", "-o", str(place / style)]
            cpu_s[style] = ran(words, environ)
        size = {style: (place / style).stat().st_size for style in STYLES}
        long = {s: len((place / s).read_text(encoding="utf-8")) for s in ("md", "github-comment")}
        print(
            f"| {jobs} | {long['md']:,} | {long['github-comment']:,} | {size['html']:,} | "
            f"{plan.stat().st_size:,} | " + " | ".join(f"{s:.1f}" for s in cpu_s.values()) + " |",
            flush=True,
        )
    fits = long["github-comment"] < COMMENT_CHARACTERS
    return fits and (jobs > 1 or size["html"] <= PAGE_BYTES)


def main(arguments: Sequence[str]) -> int:
    """Print a table of each number of jobs."""
    print(
        "| jobs | markdown, characters | comment, characters | page, bytes | plan.json, bytes |",
        end="",
    )
    print(" CPU s: plan | markdown | comment | page |")
    print("|---:" * 9 + "|")
    kept = [measured(jobs) for jobs in [int(one) for one in arguments] or COUNTS]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
