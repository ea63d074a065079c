"""`gpucost import --recording-rules`, held against Prometheus's own tool."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.gpucost.conftest import Call

RULES_TEST = """
rule_files: [rules.yml]
evaluation_interval: 5m
tests:
  - interval: 1m
    input_series:
      - {series: 'DCGM_FI_DEV_GPU_UTIL{gpu="0"}', values: '10 20 30 40 50 60'}
      - {series: 'DCGM_FI_DEV_FB_USED{gpu="0"}', values: '1 9 1 1 1 1'}
      - {series: 'DCGM_FI_DEV_FB_FREE{gpu="0"}', values: '9 1 9 9 9 9'}
      - {series: 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0"}', values: '0+5x5'}
      - {series: 'nvidia_smi_power_draw_watts{uuid="a"}', values: '100 200 300 400 500 600'}
    promql_expr_test:
"""
NOTED = {
    'gpucost:DCGM_FI_DEV_GPU_UTIL:5m{gpu="0"}': 35,
    'gpucost:DCGM_FI_DEV_FB_USED:5m{gpu="0"}': 9,
    'gpucost:DCGM_FI_DEV_FB_FREE:5m{gpu="0"}': 1,
    'gpucost:DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION:5m{gpu="0"}': 25,
    'gpucost:nvidia_smi_power_draw_watts:5m{uuid="a"}': 350,
}


def test_the_printed_rules_note_what_they_say(call: Call, tmp_path: Path) -> None:
    """Prometheus's own tool takes the rules, and finds means, the most of memory, last counts."""
    done = call("import", "--recording-rules")
    assert done.code == 0
    assert call("import", "--recording-rules").out == done.out
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    (tmp_path / "rules.yml").write_text(done.out, encoding="utf-8")
    tests = "".join(
        f"      - expr: {series.split('{')[0]}\n        eval_time: 5m\n"
        f"        exp_samples: [{{labels: '{series}', value: {value}}}]\n"
        for series, value in NOTED.items()
    )
    (tmp_path / "test.yml").write_text(RULES_TEST + tests, encoding="utf-8")
    for command in (("check", "rules", "rules.yml"), ("test", "rules", "test.yml")):
        ran = subprocess.run(
            ["promtool", *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
