"""Say what a telemetry log shows: the cause, how sure it is, and the readings behind it.

python examples/api/diagnose_a_log.py smi.csv
"""

import sys

import gpucost

try:
    profile = gpucost.read_telemetry(sys.argv[1:], kind="training", gpu="T4")
except gpucost.GpucostError as error:
    sys.exit(str(error))  # one sentence: which file, which line, what to do
for finding in gpucost.diagnose(profile):
    print(f"{finding.code} ({finding.confidence}): {finding.cause}")
    for reading in finding.evidence:
        print(f"    {reading.metric} = {reading.value}, {reading.test}")
