"""`make focus-test`: the official validator on an export of ours, in an environment of its own.

focus-validator 1.0.0, the newest on PyPI, knows FOCUS up to 1.0, and asks for columns by the names
of a draft. The rules below contradict the published FOCUS 1.0 to 1.2 and fail for the FOCUS
project's own sample data, too; every other rule has to pass.
"""

import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

_DRAFT_NAME = "published as {}; the validator has the name of a draft"
CONTRADICTED = {
    "InvoiceIssuer_Required": _DRAFT_NAME.format("InvoiceIssuerName"),
    "Provider_Required": _DRAFT_NAME.format("ProviderName"),
    "Publisher_Required": _DRAFT_NAME.format("PublisherName"),
    "ResourceID_Required": _DRAFT_NAME.format("ResourceId"),
    "SkuPriceId_Nullable": "looks for ChargeType, published as ChargeCategory",
}
_FAILED = re.compile(r"^(\w+) failed:", re.MULTILINE)


def main(gpucost: str, validator: str, profile: str) -> int:
    """Plan, export, validate; print what failed and why; 1 where a rule fails that should not."""
    with tempfile.TemporaryDirectory() as folder:
        plan, table = str(Path(folder, "plan.json")), str(Path(folder, "focus.csv"))
        subprocess.run([gpucost, "plan", profile, "-q", "-o", plan, "-f", "csv"], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        subprocess.run([gpucost, "export", plan, "--to", "focus", "-q", "-o", table], check=True)
        command = [
            str(Path(validator).resolve()),
            "--data-file",
            table,
            "--validate-version",
            "1.0",
        ]
        told = subprocess.run(
            command, cwd=_beside(validator), capture_output=True, text=True, check=False
        )
    failed = set(_FAILED.findall(told.stdout))
    if "Validation" not in told.stdout:
        sys.stderr.write(f"{told.stdout}{told.stderr}\nthe validator gave no verdict\n")
        return 1
    for rule in sorted(failed & set(CONTRADICTED)):
        sys.stdout.write(f"contradicts the published specification: {rule}: {CONTRADICTED[rule]}\n")
    for rule in sorted(failed - set(CONTRADICTED)):
        sys.stdout.write(f"FAILED: {rule}\n")
    rest = failed - set(CONTRADICTED)
    sys.stdout.write(f"{len(rest)} rules failed that should hold.\n")
    return 1 if rest else 0


def _beside(validator: str) -> Path:
    """Return the folder of the validator's package: it reads its currency table from there."""
    library = sysconfig.get_path("purelib", vars={"base": "", "platbase": ""}).lstrip("/")
    return Path(validator).resolve().parent.parent / library


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
