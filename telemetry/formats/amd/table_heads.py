"""What heads the tables that `rocm-smi` and `amd-smi monitor` print for people."""

import re

ROCM = re.compile(r"^(?:GPU|Device)\s.*\bSCLK\s.*VRAM%\s+GPU%")
MONITOR = re.compile(
    r"^(?:TIMESTAMP\s+)?GPU\s+(?:XCP\s+)?POWER\b.*\b(?:GFX%|GFX_UTIL\b|GPU_TEMP\b|VRAM_USED\b)"
)
LONGEST = 400  # characters of a line; a real one has half


def bare(line: str) -> str:
    """Return a line without what a page of text puts around it."""
    return line.strip(" \t>|#")


def fits(head: str) -> bool:
    """Return whether some line of a text heads a table of these tools."""
    lines = (bare(line) for line in head.splitlines() if len(line) < LONGEST)
    return any(ROCM.match(line) or MONITOR.match(line) for line in lines)
