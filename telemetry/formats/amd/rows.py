"""The rows of AMD in the table of formats; the exporter's text is read as `prometheus-text`."""

from telemetry.formats.amd.table_heads import fits
from telemetry.formats.form import Format, text_with

ROWS = (
    Format(
        name="rocm-smi",
        title="rocm-smi --json and --csv",
        module="amd.rocm_smi",
        fits=text_with(
            r'\A\s*\{\s*"card\d+"\s*:\s*\{|^device,[^\n]*\((%|W|B)\)|'
            r"^[^\n,{\"]*(,[^\n,{\"]*)?[\s,]device,[^\n]*"
            r"(GPU use \(%\)|Graphics Package Power \(W\)|Temperature \(Sensor|VRAM Total)"
        ),
        seen="ROCm 4.3 to 6.1 on MI100, RX 6700 XT, Vega 10 and 20; CSV by others' logs and tests",
        tells="busy time, memory, power and temperature; over time where each line has a date",
        lacks="when it was, unless a date was put before the lines; what moved device memory, "
        "before ROCm 6.1",
    ),
    Format(
        name="amd-table",
        title="the tables of rocm-smi and amd-smi monitor",
        module="amd.people_tables",
        fits=fits,
        seen="ROCm 5 to 7 as issues and manuals show them, MI300X in parts, too",
        tells="busy time, memory, power, temperature; over time in a log of many",
        lacks="which GPU by uuid; when it was, unless `date` stands above it",
    ),
    Format(
        name="amd-smi",
        title="amd-smi metric and monitor, JSON and CSV",
        module="amd.amd_smi",
        fits=text_with(
            r'"gpu_data"\s*:\s*\[|"gfx_activity"\s*:|"socket_power"\s*:|'
            r"^(?=[^\n]*\bgpu\b)[^\n]*\b(gfx_activity|socket_power|power_usage,[^\n]*\bgfx)\b"
        ),
        seen="JSON as issues of amdsmi show it, ROCm 6.3 to 7; CSV by the documentation",
        tells="busy time, memory, power, energy; over time with `-w`",
        lacks="how busy matrix units and memory are",
    ),
)
