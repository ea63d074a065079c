"""Damaged telemetry by the thousand: whatever is handed over is read or refused.

`python -m tests.fuzz 10000 --seed 1 --jobs 2 --seconds 600` mutates the bytes of every fixture, and
of every file below GPUCOST_FUZZ_FILES; `--show SEED` writes one out. An input fails where something
other than a sentence comes out, where it takes longer than any file of its size may, or where a
value lies outside of its slot's bounds.
"""
