"""The rows of exporters and monitoring systems in the table of formats."""

import re

from telemetry.formats.form import Format, json_with, text_with
from telemetry.formats.metrics.readings_columns import columns_of, is_filled

_OF_GPUS = re.compile(r"gpu|dcgm|nvidia", re.IGNORECASE)


def _is_readings(head: str) -> bool:
    """Return whether a head is a table of times, names and values, some of them of a GPU."""
    header = next((line for line in head.splitlines() if is_filled(line)), "")
    return columns_of(header) is not None and bool(_OF_GPUS.search(head))


ROWS = (
    Format(
        name="serving-bench",
        title="result of `vllm bench` or SGLang's bench_serving (JSON)",
        module="metrics.serving_bench",
        fits=json_with(
            r'"(request_throughput|requests_per_second)"\s*:\s*[\d.]|"avg_latency"\s*:\s*[\d.]'
        ),
        seen="keys of vLLM 0.6 to 0.11 and SGLang 0.5, files by hand",
        tells="requests, tokens and latencies under the benchmark's load",
        lacks="anything of the GPU: give its telemetry beside it",
    ),
    Format(
        name="readings-csv",
        title="a table with a reading a row (DCGM, InfluxDB, MLflow, Comet, Neptune)",
        module="metrics.readings_csv",
        fits=_is_readings,
        seen="by the columns that DCGM's users, InfluxDB and MLflow's client write; Parquet by "
        "neptune-exporter's schema",
        tells="whatever names it holds, by GPU and time",
        lacks="what was not exported",
    ),
    Format(
        name="otlp-json",
        title="OpenTelemetry metrics (OTLP JSON)",
        module="metrics.otlp_json",
        fits=json_with(r'"resourceMetrics"\s*:'),
        seen="written by OpenTelemetry's own encoder for Python; names of August 2026",
        tells="`hw.gpu.*` and `gpu.dcgm.*` over time, jobs and machines by attributes",
        lacks="anything of SMs in `hw.gpu.*`",
    ),
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
        title="Prometheus exposition text (exporters of GPUs, servers of models)",
        module="metrics.prometheus_text",
        fits=text_with(
            r"^# TYPE [A-Za-z_:][\w:]* (gauge|counter|untyped|summary|histogram)\s*$"
            r"|^(\w+_)?(dcgm_fi_|nvidia_smi_|vllm[:_]|sglang[:_]|nv_inference_|nv_gpu_|tgi_|"
            r"ray_node_|hw_(gpu|power|energy)_|gpu_dcgm_)\w+(\{[^\n]*\})?\s+\S"
        ),
        seen="dcgm-exporter 3.x and 4.x, nvidia_gpu_exporter with drivers 590 to 610; vLLM, "
        "SGLang, Triton, TGI, Ray and OpenTelemetry by their documentation",
        tells="one instant: which GPU, its memory; what a server has in work",
        lacks="how busy it is over time, unless scrapes are appended to each other",
    ),
)
