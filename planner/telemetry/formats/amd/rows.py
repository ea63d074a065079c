"""The rows of AMD in the table of formats; the exporter's text is read as `prometheus-text`."""

from planner.telemetry.formats.form import Format, text_with

ROWS = (
    Format(
        name="rocm-smi",
        title="rocm-smi --json and --csv",
        module="amd.rocm_smi",
        fits=text_with(r'\A\s*\{\s*"card\d+"\s*:\s*\{|^device,[^\n]*\((%|W|B)\)'),
        seen="ROCm 5.7 and 6.1 on MI100, RX 6700 XT and Vega 20; CSV by the documentation",
        tells="busy time, memory, power and temperature of an instant",
        lacks="when it was; what moved device memory, before ROCm 6.1",
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
