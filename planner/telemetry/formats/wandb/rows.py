"""The rows of Weights & Biases in the table of formats."""

from planner.telemetry.formats.form import Format, json_with

ROWS = (
    Format(
        name="wandb-jsonl",
        title="W&B system metrics (JSON lines)",
        module="wandb.wandb_jsonl",
        fits=json_with(r'"(system[./])?gpu\.(process\.)?\d+\.|"system\.(cpu|memory)|"_timestamp"'),
        seen="a run of 2026 on a real RTX 4090",
        tells="busy time, memory, power, the machine's CPU and disks, every 15 s",
        lacks="step times; what happened between two samples",
    ),
)
