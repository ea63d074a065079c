"""The rows of profilers in the table of formats."""

import re

from telemetry.formats.form import Format, json_with, text_with

_EXPORT = re.compile(r"CUPTI_ACTIVITY_KIND_|TARGET_INFO_GPU|NVTX_EVENTS|ANALYSIS_DETAILS")


def _is_nsys(head: str) -> bool:
    return head.startswith("SQLite format 3") and bool(_EXPORT.search(head))


ROWS = (
    Format(
        name="nsys-sqlite",
        title="Nsight Systems, exported as SQLite",
        module="profilers.nsys_sqlite",
        fits=_is_nsys,
        binary=True,
        seen="by the documentation of its tables",
        tells="how busy each GPU was from its first to its last work, which GPU, its memory",
        lacks="steps; what SMs did within kernels; the time of day",
    ),
    Format(
        name="kineto",
        title="a trace of the PyTorch profiler (Kineto, Chrome format)",
        module="profilers.kineto",
        fits=json_with(r'"traceEvents"\s*:|"deviceProperties"\s*:'),
        seen="real traces of 2021 to 2025, with and without GPUs, steps and NCCL",
        tells="busy time, step time, waiting for the DataLoader, exchange that nothing hides",
        lacks="power; memory in use; other ranks: each trace is a profile of its own",
    ),
    Format(
        name="zeus",
        title="Zeus: the monitor's CSV, and tables of runs by power limit",
        module="profilers.zeus",
        fits=text_with(
            r"\Astart_time,window_name,elapsed_time|\A[^\n]*\btime_per_epoch,average_power\b"
        ),
        seen="files of Zeus's own repository: V100, A40",
        tells="energy and time of each window or epoch",
        lacks="how busy the GPU was; its memory",
    ),
    Format(
        name="codecarbon",
        title="CodeCarbon's emissions.csv",
        module="profilers.codecarbon",
        fits=text_with(r"\A(?=[^\n]*\bgpu_energy\b)[^\n]*\bemissions_rate\b"),
        seen="files of CodeCarbon 2 and 3 from several people's runs, Linux and Windows",
        tells="mean power of the GPUs over each run, which model, how long",
        lacks="how busy the GPUs were; their memory",
    ),
)
