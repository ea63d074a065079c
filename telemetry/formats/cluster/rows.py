"""The rows of schedulers, servers and clouds in the table of formats."""

from telemetry.formats.form import Format, json_with, text_with

_says_jobs = json_with(r'"jobs"\s*:\s*\[')
_says_slurm = json_with(r'"[Ss]lurm"\s*:|"tres"\s*:|"association"\s*:')


def _is_sacct_json(head: str) -> bool:
    return _says_jobs(head) and _says_slurm(head)


ROWS = (
    Format(
        name="cloudwatch-json",
        title="CloudWatch JSON (get-metric-data, get-metric-statistics)",
        module="cluster.cloudwatch_json",
        fits=json_with(r'"MetricDataResults"\s*:|"Datapoints"\s*:\s*\['),
        seen="answers written by moto 5, names by the documentation of the CloudWatch agent",
        tells="means of each period, by instance and GPU",
        lacks="what goes on inside a period; anything of SMs",
    ),
    Format(
        name="jobstats",
        title="what Jobstats keeps of a Slurm job",
        module="cluster.jobstats",
        fits=lambda head: (
            bool(text_with(r"\AJS1:")(head.lstrip()))
            or json_with(r'"nodes"\s*:\s*\{(?s:.)*"gpu_(utilization|used_memory)"\s*:')(head)
        ),
        seen="JS1 as Jobstats writes it, by its documentation",
        tells="mean utilisation and the most memory of each GPU over the job",
        lacks="when, and how it moved",
    ),
    Format(
        name="slurm-sacct",
        title="Slurm accounting (sacct -P)",
        module="cluster.sacct",
        fits=text_with(
            r"\A(?=[^\n]*\|)(?=[^\n]*\b(JobID|JobIDRaw|State|Elapsed|ElapsedRaw)\b)"
            r"[^\n]*\b(JobID|AllocTRES|AllocGRES|ReqTRES|CPUTimeRAW|TimelimitRaw|NodeList)\b"
        ),
        seen="columns in any order; accounts of 2019 to 2026 of five clusters, GPUs by its "
        "documentation",
        tells="which jobs held how many GPUs for how long, and Slurm's own utilisation",
        lacks="which GPU did what; anything where Slurm does not count GPUs",
    ),
    Format(
        name="slurm-sacct-json",
        title="Slurm accounting (sacct --json)",
        module="cluster.sacct_json",
        fits=_is_sacct_json,
        seen="Slurm 23.02 on a real cluster; GPUs by the names of its data parser",
        tells="the same as sacct -P",
        lacks="the same",
    ),
)
