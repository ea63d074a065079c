"""Holds exported files against the parsers of the tools that read them; run by `make export-test`.

It runs in an environment of its own, which has the tools, on what tests/exported_tasks.py wrote.
"""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import hcl2
import jsonschema
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


OTHERS = ("kueue.x-k8s.io", "scheduling.run.ai", "keda.sh")
SINCE = {"resource.k8s.io": "1.34"}


def check_kubernetes(text: str) -> None:
    """The API's published schemas, strictly.

    What is not of Kubernetes itself (Kueue, KAI, KEDA) is held against the definitions (CRDs) in
    the folders of GPUCOST_CRDS, where that is set.
    """
    custom = _definitions(os.environ.get("GPUCOST_CRDS", ""))
    for one in filter(None, yaml.safe_load_all(text)):
        kind = (one["apiVersion"], one["kind"])
        group = one["apiVersion"].split("/")[0]
        if kind in custom:
            jsonschema.validate(one, custom[kind])
        elif group not in OTHERS:
            kubernetes_validate.validate(one, SINCE.get(group, "1.31"), strict=True)
        elif custom:
            raise ValueError(f"{kind} is not among the definitions in GPUCOST_CRDS")


@cache
def _definitions(folders: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the schemas of all definitions in the folders, strict, by version and kind."""
    found = {}
    for folder in filter(None, folders.split(":")):
        for file in sorted(Path(folder).glob("*.yaml")):
            document = yaml.safe_load(file.read_text(encoding="utf-8"))
            if document.get("kind") != "CustomResourceDefinition":
                continue
            spec = document["spec"]
            for version in spec["versions"]:
                schema = version["schema"]["openAPIV3Schema"]
                _tighten(schema)
                schema["properties"]["metadata"] = {"type": "object"}
                found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return found


def _tighten(schema: Any) -> None:
    """Let no field pass that a schema does not name; numbers stand where either may."""
    if isinstance(schema, list):
        for inner in schema:
            _tighten(inner)
    if not isinstance(schema, dict):
        return
    if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        schema.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        schema.pop("type", None)
    for inner in schema.values():
        _tighten(inner)


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
