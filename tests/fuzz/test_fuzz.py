"""What damaged inputs have broken once, and that a seed makes its input again.

The inputs themselves are tried by `make fuzz-telemetry`: with another fixture a seed makes others.
"""

import contextlib
import json
from pathlib import Path

import pytest

from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.fuzz.inputs import damaged, wrong
from tests.telemetry.reading import read_source

HUGE = "99999999999999999999"
EVENT = '{"_timestamp": %s, "system.gpu.0.gpu": 90.0, "system.cpu": 50.0}\n'


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("# gpu sm\n# Idx %\n  ٣ 50\n  0 50\n", "an index in another alphabet"),
        (f"# gpu sm\n# Idx %\n  {HUGE} 50\n  0 50\n", "an index beyond all machines"),
        (f'DCGM_FI_DEV_GPU_UTIL{{gpu="{HUGE}"}} 50\n', "the same as a label"),
        (f'{{"system.gpu.{HUGE}.gpu": 50, "_timestamp": 1}}\n', "the same in a key"),
        (f"index, utilization.gpu [%], clocks.sm [MHz]\n0, 50 %, {HUGE} MHz\n", "a huge clock"),
        (f"index, utilization.gpu [%], memory.used [MiB]\n0, 5 %, {HUGE} MiB\n", "a huge figure"),
        (
            "index, utilization.gpu [%], memory.total [MiB]\n0, 50 %, 1e-320 MiB\n",
            "memory of next to nothing",
        ),
        (EVENT % 1700000000 + EVENT % "1e400" + EVENT % 1700000030, "a time that is none"),
        (
            json.dumps(
                {
                    "status": "success",
                    "data": {
                        "resultType": "matrix",
                        "result": [
                            {
                                "metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0"},
                                "values": [[1, 10**400], [2, "5"]],
                            }
                        ],
                    },
                }
            ),
            "an integer that no float holds",
        ),
    ],
)
def test_what_broke_once_is_read_or_refused(content: str, what: str, tmp_path: Path) -> None:
    """No traceback, and no value that cannot be."""
    file = tmp_path / "given"
    file.write_text(content, encoding="utf-8")
    with contextlib.suppress(InputError):
        assert wrong(read_source(str(file), Hints())) is None, what


def test_a_seed_makes_its_input_again() -> None:
    """What failed once can be looked at."""
    assert damaged(7) == damaged(7)
    assert damaged(7) != damaged(8)


def test_what_no_profile_can_hold_is_left_out_with_a_note(tmp_path: Path) -> None:
    """The profile of a damaged source can be written and read again, and says what is missing."""
    memory = '"system.memory_percent": 25.0, "system.proc.memory.availableMB": -49152.0'
    lines = [EVENT % f"{second}, {memory}" for second in (1700000000, 1700000030)]
    file = tmp_path / "events.jsonl"
    file.write_text("".join(lines), encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    assert wrong((profile,)) is None
    assert profile.hardware.ram_gib is None
    assert any("left out: hardware.ram_gib is -" in note for note in profile.provenance.notes)
