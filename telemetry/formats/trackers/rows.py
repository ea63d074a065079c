"""The rows of trackers in the table of formats."""

import re

from telemetry.formats.form import Format, json_with

# The first record of an event file: its length, its checksum, and `brain.Event:2` as the version.
_EVENTS = re.compile(r"\A.{8}.{4}.{0,16}brain\.Event:\d", re.DOTALL)
ROWS = (
    Format(
        name="tensorboard",
        title="TensorBoard event file",
        module="trackers.tensorboard",
        fits=lambda head: bool(_EVENTS.search(head)),
        binary=True,
        seen="files written by tensorboardX 2.6; tags of Lightning by its documentation",
        tells="scalars of GPUs, where the program logged them",
        lacks="anything that was not logged; most runs log no GPU",
    ),
    Format(
        name="mlflow",
        title="MLflow run (folder in mlruns, metrics/get-history JSON)",
        module="trackers.mlflow",
        fits=json_with(r'"metrics"\s*:\s*\[\s*\{\s*"(key|value|timestamp|step)"\s*:'),
        seen="a file store written by MLflow 3; names of its system metrics",
        tells="every GPU of the machine, every 10 s; the host",
        lacks="which of the GPUs the run used; anything of SMs",
    ),
    Format(
        name="comet",
        title="Comet experiment (get_metrics, JSON; cometx metrics.jsonl)",
        module="trackers.comet",
        fits=json_with(r'"metricName"\s*:\s*"'),
        seen="by the code of comet_ml 3.58 and cometx, which write it",
        tells="busy time, memory, power of the GPUs that the program sees",
        lacks="anything of SMs",
    ),
    Format(
        name="clearml",
        title="ClearML scalars (JSON)",
        module="trackers.clearml",
        fits=json_with(r'":monitor:gpu"\s*:'),
        seen="by the documentation of ClearML 1.16",
        tells="utilisation and memory, means over 30 s",
        lacks="power; utilisation where it is a constant 100 %",
    ),
)
