"""Holds exported files against the parsers of the tools that read them; run by `make export-test`.

It runs in an environment of its own, which has the tools, on what tests/exported_tasks.py wrote.
"""

import sys
from pathlib import Path

import hcl2
import kubernetes_validate
import yaml
from dstack._internal.core.models.configurations import parse_run_configuration
from sky.utils import common_utils, infra_utils, schemas


def check_skypilot(text: str) -> None:
    """SkyPilot's own schemas of a task and its resources, and its reading of `infra`."""
    task = yaml.safe_load(text)
    common_utils.validate_schema(task, schemas.get_task_schema(), "task: ")
    common_utils.validate_schema(task["resources"], schemas.get_resources_schema(), "resources: ")
    infra_utils.InfraInfo.from_str(task["resources"]["infra"])


def check_dstack(text: str) -> None:
    """What dstack reads run configurations with."""
    parse_run_configuration(yaml.safe_load(text))


def check_kubernetes(text: str) -> None:
    """The API's published schemas, strictly."""
    for one in filter(None, yaml.safe_load_all(text)):
        kubernetes_validate.validate(one, "1.31", strict=True)


CHECKS = {
    "skypilot": check_skypilot,
    "dstack": check_dstack,
    "kubernetes": check_kubernetes,
    "terraform": hcl2.loads,  # the grammar
}


def main(folder: Path) -> int:
    """Check every file; say how many of each tool were read, and each refusal."""
    bad = 0
    for tool, check in CHECKS.items():
        files = sorted((folder / tool).glob("*"))
        for file in files:
            try:
                check(file.read_text(encoding="utf-8"))
            except Exception as error:  # noqa: BLE001 - the tools raise what they like
                bad += 1
                sys.stdout.write(f"{file}: {type(error).__name__}: {error}\n")
        sys.stdout.write(f"{tool}: {len(files)} files read\n")
        bad += not files
    return bad


if __name__ == "__main__":
    sys.exit(min(main(Path(sys.argv[1])), 100))
