"""The rows of nvidia-smi's family in the table of formats."""

import re

from telemetry.formats.form import Format, json_with, text_with
from telemetry.formats.smi.gpustat_heads import GPU
from telemetry.readers.column_names import csv_header
from telemetry.readers.hints import Hints

# `gpu` and a column of dmon's behind it: a heading `# GPU plan` is none.
_DMON = (
    r"^#\s*(Date\s+)?(Time\s+)?gpu\s+"
    r"(pwr|[gm]temp|sm|mem|enc|dec|jpg|ofa|[mp]clk|[pt]viol|fb|bar1|ccpm|[sd]becc|pci|[rt]xpci)\b"
)
_NVIDIA_TIME = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d", re.MULTILINE)
_HEADER_WITHIN = 200
_gpustat_json = json_with(r'"query_time"\s*:')


def _is_csv(head: str) -> bool:
    if head.lstrip()[:1] in ("{", "[", "<"):
        return False
    if _NVIDIA_TIME.search(head):
        return True
    return csv_header(head.splitlines()[:_HEADER_WITHIN], Hints()) is not None


ROWS = (
    Format(
        name="nvidia-smi-xml",
        title="nvidia-smi -q -x (XML)",
        module="smi.xml_log",
        fits=text_with(r"<nvidia_smi_log\b|<!DOCTYPE nvidia_smi_log"),
        seen="v10 to v13, drivers 515 to 595",
        tells="busy time, memory, power, clocks and why they were held down; over time with `-l`",
        lacks="MIG instances one by one",
    ),
    Format(
        name="nvidia-smi-q",
        title="nvidia-smi -q (text)",
        module="smi.q_text",
        fits=text_with(r"^=+NVSMI LOG=+"),
        seen="drivers 590 and 610, with MIG and without, on Linux and Windows",
        tells="the same as XML",
        lacks="MIG instances one by one",
    ),
    Format(
        name="nvidia-smi-table",
        title="the table of nvidia-smi",
        module="smi.table",
        fits=text_with(r"\bNVIDIA-SMI \d+\.\d+"),
        seen="drivers 470 and 590; tables that go on as CSV",
        tells="busy time, memory, power, temperature; over time in a log of many",
        lacks="which GPU by uuid; long names of GPUs are cut off",
    ),
    Format(
        name="nvidia-smi-pmon",
        title="nvidia-smi pmon",
        module="smi.pmon",
        fits=text_with(r"^#\s*(Date\s+)?(Time\s+)?gpu\s+pid\s"),
        seen="drivers 590 and 595",
        tells="busy time and memory of all processes of a GPU together",
        lacks="power; MIG: the driver gives no figures of its processes",
    ),
    Format(
        name="nvidia-smi-apps",
        title="nvidia-smi --query-compute-apps and --query-accounted-apps",
        module="smi.process_csv",
        fits=text_with(r"^(?=[^\n]*\bpid\b)[^\n]*\b(used_(gpu_)?memory|max_memory_usage) \[MiB\]"),
        seen="drivers 590, 595 and 610; accounts by the documentation",
        tells="memory of processes; accounts: a process's mean busy time, greatest memory, length",
        lacks="on Windows the memory of processes; of accounts, when a process began",
    ),
    Format(
        name="gpustat",
        title="gpustat, --json and as it prints",
        module="smi.gpustat",
        fits=lambda head: _gpustat_json(head) or bool(GPU.search(head)),
        seen="by its source, 0.6 to 1.1",
        tells="busy time, memory, power and temperature of each query",
        lacks="clocks; the zone of its times",
    ),
    Format(
        name="nvtop",
        title="nvtop -s",
        module="smi.nvtop",
        fits=json_with(r'"device_name"\s*:[^\n]*\n?\s*"gpu_clock"\s*:'),
        seen="by its source, 3.2",
        tells="busy time, memory, power and clocks, of AMD and Intel GPUs, too",
        lacks="when it was; which GPU by uuid",
    ),
    Format(
        name="nvitop",
        title="nvitop's ResourceMetricCollector",
        module="smi.nvitop",
        fits=text_with(r"gpu:\d+\)?/gpu_utilization \(%\)/mean"),
        seen="by its source",
        tells="means of busy time, memory and power over each collection",
        lacks="clocks; what happened within a collection",
    ),
    Format(
        name="dcgmi-dmon",
        title="dcgmi dmon",
        module="smi.dcgmi_dmon",
        fits=text_with(r"^#\s?Entity\s"),
        seen="by its source",
        tells="the fields that were asked for: SM, tensor and memory activity, MIG instances",
        lacks="when it was (--interval); of an instance, which GPU it is part of",
    ),
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
        module="csv_log",
        fits=_is_csv,
        seen="drivers 470 to 610, on Linux and Windows, and loggers of several people's own",
        tells="whatever columns were asked for",
        lacks="the machine beside its GPUs; which GPU, without index or uuid",
    ),
)
