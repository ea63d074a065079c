"""`--cluster` takes a word, a TOML file, or the nodes that kubectl prints."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpucost.arguments.parameters import TYPES


def _node(type_: str, gpus: str = "", id_: str = "aws:///us-east-1a/i-1") -> dict[str, Any]:
    labels = {
        "node.kubernetes.io/instance-type": type_,
        "topology.kubernetes.io/region": "us-east-1",
    }
    capacity = {"cpu": "8", "nvidia.com/gpu": gpus} if gpus else {"cpu": "8"}
    node = {"metadata": {"labels": labels}, "spec": {"providerID": id_}}
    return {"kind": "Node", **node, "status": {"capacity": capacity}}


def _written(folder: Path, *nodes: dict[str, Any]) -> str:
    file = folder / "nodes.json"
    file.write_text(json.dumps({"kind": "List", "items": nodes}), encoding="utf-8")
    return str(file)


def test_the_nodes_of_kubectl_are_pools_of_their_types(tmp_path: Path) -> None:
    """Two machines with GPUs and one without, as many as run now; a plugin that sees no GPU: 0."""
    nodes = (_node("g5.xlarge", "1"), _node("g5.xlarge", "1"), _node("m5.xlarge", "0"))
    cluster = TYPES["cluster"].parse(_written(tmp_path, *nodes))
    assert (cluster.kind, cluster.region) == ("eks", "us-east-1")
    assert [(pool.type, pool.limits) for pool in cluster.gpu_nodes] == [("g5.xlarge", (2, 2))]
    assert [(pool.type, pool.limits) for pool in cluster.cpu_nodes] == [("m5.xlarge", (1, 1))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "eks"\nnodes = 3', "unknown field `nodes`"),
        ('{"kind": "List"}', "missing required field `items`"),
        ("kind: eks", "Expected '='"),
    ],
)
def test_what_is_no_cluster_says_what_may_be_written(text: str, words: str, tmp_path: Path) -> None:
    """The trouble, then every form that is taken, with the keys of the file."""
    file = tmp_path / "cluster.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"kubectl get nodes -o json.*control_plane") as refused:
        TYPES["cluster"].parse(str(file))
    assert words in str(refused.value)


def test_nodes_of_two_clouds_are_no_cluster(tmp_path: Path) -> None:
    """Whose control plane is to be priced is not known."""
    with pytest.raises(ValueError, match="not all of EKS, or all of DOKS"):
        TYPES["cluster"].parse(
            _written(tmp_path, _node("g5.xlarge"), _node("t", id_="gce://p/z/n"))
        )
