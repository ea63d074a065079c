"""Predict how much faster a job runs on other GPUs, each as a range with its reason.

python examples/api/compare_gpus.py examples/visual-search.json
"""

import sys

import gpucost

profile = gpucost.load_profile(sys.argv[1])
for gpu in ("L4", "A100-SXM4-80GB"):
    for actions in ((), ("gpu-preprocessing",)):
        faster = gpucost.predict(profile, gpu=gpu, actions=actions)
        with_actions = " with " + ", ".join(actions) if actions else ""
        print(f"{gpu}{with_actions}: x{faster.low:.2f} to x{faster.high:.2f} ({faster.basis})")
