"""The rows of nvidia-smi's family in the table of formats."""

import re

from planner.telemetry.formats.form import Format, text_with
from planner.telemetry.parsing.csv_columns import csv_header
from planner.telemetry.parsing.hints import Hints

# `gpu` and a column of dmon's behind it: a heading `# GPU plan` is none.
_DMON = (
    r"^#\s*(Date\s+)?(Time\s+)?gpu\s+"
    r"(pwr|[gm]temp|sm|mem|enc|dec|jpg|ofa|[mp]clk|[pt]viol|fb|bar1|ccpm|[sd]becc|pci|[rt]xpci)\b"
)
_NVIDIA_TIME = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d", re.MULTILINE)
_NVIDIA_TABLE = re.compile(r"\bNVIDIA-SMI \d+\.\d+")
_HEADER_WITHIN = 200


def _is_csv(head: str) -> bool:
    if head.lstrip()[:1] in ("{", "[", "<"):
        return False
    # A log of tables may go on as rows further down: its reader looks.
    if _NVIDIA_TIME.search(head) or _NVIDIA_TABLE.search(head):
        return True
    return csv_header(head.splitlines()[:_HEADER_WITHIN], Hints()) is not None


ROWS = (
    Format(
        name="nvidia-smi-dmon",
        title="nvidia-smi dmon",
        module="smi.dmon",
        fits=text_with(_DMON),
        seen="drivers 590 to 610, on Linux and Windows, with MIG and without",
        tells="busy time, power, clocks; memory with `-s m`",
        lacks="when a row was taken, without `-o T`; which GPU by uuid",
    ),
)
# CSV comes last: many things look like it.
LAST = (
    Format(
        name="nvidia-smi-csv",
        title="nvidia-smi CSV and CSV of GPU readings",
        module="smi.nvidia_smi_csv",
        fits=_is_csv,
        seen="drivers 470 to 610, on Linux and Windows, and loggers of several people's own",
        tells="whatever columns were asked for",
        lacks="the machine beside its GPUs; which GPU, without index or uuid",
    ),
)
