"""The rows of exporters and monitoring systems in the table of formats."""

from planner.telemetry.formats.form import Format, json_with, text_with

ROWS = (
    Format(
        name="prometheus-json",
        title="Prometheus HTTP API JSON",
        module="metrics.prometheus_json",
        fits=json_with(r'"resultType"\s*:|"status"\s*:\s*"(success|error)"'),
        seen="vectors of a real Prometheus; matrices by the documentation",
        tells="each series over time, jobs and machines by labels",
        lacks="what the query left out; quantiles inside a step",
    ),
    Format(
        name="prometheus-text",
        title="Prometheus exposition text (dcgm-exporter, nvidia_gpu_exporter)",
        module="metrics.prometheus_text",
        fits=text_with(
            r"^# TYPE [A-Za-z_:][\w:]* (gauge|counter|untyped|summary|histogram)\s*$"
            r"|^(dcgm_fi_|nvidia_smi_)\w+(\{[^\n]*\})?\s+\S"
        ),
        seen="dcgm-exporter 3.x and 4.x, nvidia_gpu_exporter with drivers 590 to 610",
        tells="one instant: which GPU, its memory",
        lacks="how busy it is over time, unless scrapes are appended to each other",
    ),
)
