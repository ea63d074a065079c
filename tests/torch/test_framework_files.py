"""Configuration that was exported, read by the frameworks themselves."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpucost.cli import cli
from tests.conftest import ROOT

NUMERIC = ("--numeric", "mixed-precision")


@pytest.fixture
def exported(tmp_path: Path) -> Any:
    """Exports the option on today's machine of the visual search; returns the file."""
    plan = str(tmp_path / "plan.json")
    example = str(ROOT / "examples" / "visual-search.json")
    runner = CliRunner()
    assert runner.invoke(cli, ["plan", example, "-q", "-o", plan]).exit_code == 0
    (job,) = json.loads(Path(plan).read_text(encoding="utf-8"))["jobs"]
    here = job["baseline"]["offer"]["instance_type"]
    option = next(o["id"] for o in job["options"] if o["offer"]["instance_type"] == here)

    def export(word: str, name: str, *more: str) -> Path:
        target = tmp_path / name
        words = ["export", plan, "--to", word, "--option", option, "-o", str(target), *more]
        ran = runner.invoke(cli, words)
        assert ran.exit_code == 0, ran.output
        return target

    return export


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_transformers(exported: Any) -> None:
    """HfArgumentParser makes TrainingArguments of it, with the workers of the plan."""
    transformers = pytest.importorskip("transformers")
    target = exported("transformers", "arguments.json")
    parser = transformers.HfArgumentParser(transformers.TrainingArguments)
    (arguments,) = parser.parse_json_file(str(target))
    assert arguments.dataloader_num_workers == 3
    assert arguments.dataloader_prefetch_factor == 4


def test_accelerate(exported: Any) -> None:
    """Accelerate's own reader takes the file."""
    pytest.importorskip("accelerate")
    from accelerate.commands.config.config_args import load_config_from_file  # noqa: PLC0415

    found = load_config_from_file(str(exported("accelerate", "accelerate.yaml", *NUMERIC)))
    assert found.mixed_precision == "fp16"
    assert found.num_processes == 1


@pytest.mark.filterwarnings("ignore")  # of Lightning itself
def test_lightning(exported: Any) -> None:
    """A Trainer is made of the file's trainer section."""
    lightning = pytest.importorskip("lightning")
    yaml = pytest.importorskip("yaml")
    text = exported("lightning", "lightning.yaml", *NUMERIC).read_text(encoding="utf-8")
    settings = yaml.safe_load(text)["trainer"]
    assert settings == {"precision": "16-mixed"}
    trainer = lightning.Trainer(accelerator="cpu", **{**settings, "precision": "bf16-mixed"})
    assert trainer.precision == "bf16-mixed"


@pytest.mark.filterwarnings("ignore")  # three workers on two cores
def test_pytorch(exported: Any) -> None:
    """DataLoader takes the arguments."""
    data = pytest.importorskip("torch.utils.data")
    module = _module(exported("pytorch", "settings.py"))
    assert data.DataLoader(range(8), **module.DATA_LOADER).num_workers == 3


def test_keras(exported: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyDataset takes the workers, and the policy is one of Keras's own."""
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    module = _module(exported("keras", "settings.py", *NUMERIC))
    assert keras.utils.PyDataset(**module.PY_DATASET).workers == 3
    assert keras.dtype_policies.DTypePolicy(**module.DTYPE_POLICY).compute_dtype == "float16"
