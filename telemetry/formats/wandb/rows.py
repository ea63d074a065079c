"""The rows of Weights & Biases in the table of formats."""

from telemetry.formats.form import Format, json_with, text_with

ROWS = (
    Format(
        name="wandb-log",
        title="the log of a W&B run (run-ID.wandb)",
        module="wandb.wandb_binary",
        fits=lambda head: head.startswith(":W&B"),
        binary=True,
        seen="a log that wandb 0.31 wrote, of a machine without a GPU; GPUs by its protocol",
        tells="the same as the event stream, of a run that is nowhere but on this disk",
        lacks="step times; what happened between two samples",
    ),
    Format(
        name="wandb-jsonl",
        title="W&B system metrics (JSON lines)",
        module="wandb.wandb_jsonl",
        fits=json_with(r'"(system[./])?gpu\.(process\.)?\d+\.|"system\.(cpu|memory)|"_timestamp"'),
        seen="a run of 2026 on a real RTX 4090; wandb-events.jsonl of 2020 by the documentation",
        tells="busy time, memory, power, the machine's CPU and disks, every 15 s",
        lacks="step times; what happened between two samples",
    ),
    Format(
        name="wandb-csv",
        title="a chart of W&B exported as CSV",
        module="wandb.wandb_csv",
        fits=text_with(r"\A[^\n]*system[./]gpu\.(process\.)?\d+\.[A-Za-z]+\"?[,\r\n]"),
        seen="by the documentation",
        tells="what the chart shows, of each run",
        lacks="times, where it was exported by step; points between those of the chart",
    ),
)
