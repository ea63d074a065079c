"""What is recognised, what is refused, and that refusing needs the head alone."""

import contextlib
import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.errors import InputError
from telemetry.formats.sniff import UnknownFormatError, formats, recognize
from telemetry.readers.hints import Hints
from telemetry.readers.payload import HEAD_BYTES, MOST_BYTES, Stream, decode
from tests.telemetry.captures import assert_writable
from tests.telemetry.reading import read_source

HEADER = "timestamp, index, utilization.gpu [%]\n"
ROW = "2026/03/01 10:00:00.000, 0, 50 %\n"


def refused(tmp_path: Path, content: bytes, hints: Hints | None = None) -> str:
    """Return the sentence with which a file of this content is refused."""
    file = tmp_path / "given"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_source(str(file), hints or Hints())
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b" \n\n\t\n", "the file is empty"),
        (b"name,date,hours\nann,2026-01-01,5\n", "not how busy the GPUs were"),
        (b"# DCGM FIELD, Prometheus metric type, help message\n", "dcgm-exporter counters"),
        (b"List of valid properties to query for the switch\n", "--help-query-gpu"),
        (b'{"gpu": "A100", "gpu_nvidia": []}', "wandb-metadata"),
        (b'{"_step":5,"_wandb":{"runtime":9}}', "wandb-summary"),
        (b'{"schemaVersion": 1, "traceEvents": []}', "neither work of a GPU nor a step"),
        (b"identity/LineItemId,identity/TimeInterval\n", "AWS cost and usage"),
        (b'"AvailabilityZone","BilledCost","ChargePeriodEnd"\n', "FOCUS bill"),
        (b"epoch,step,train_loss,val_loss\n0,1,0.5,\n", "training log"),
        (
            b"step,DeviceStatsMonitor.on_train_batch_end/allocated_bytes.all.peak\n1,2\n",
            "Lightning",
        ),
        (b"PK\x03\x04\x14\0\x06\0[Content_Types].xml\0\0xl/workbook.xml", "Save the sheet as CSV"),
        (b"openapi: 3.0.0\ninfo:\n  title: x\n", "YAML"),
        (b'{"schema": "gpucost.plan/v1"}', "plan"),
        (b'{"a": 1}', "neither a profile nor telemetry"),
        (b"# TYPE node_load1 gauge\nnode_load1 0.5\n", "no GPU metric"),
        (b'{"status":"error","errorType":"bad_data","error":"1:2: no"}', "1:2: no"),
        (b'{"status":"success","data":{"resultType":"matrix","result":[]}}', "no series"),
        (b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', "scalar"),
        (b'{"status":"success","data":{"resultType":"mat', "not valid JSON"),
        (HEADER.encode(), "no row under it"),
        (b"2026/03/01 10:00:00.000, 0, 50 %\n", "no header line"),
        (b"utilization.gpu [%]\n[N/A]\n[N/A]\n", "no reading is left (value [N/A]: 2)"),
        (b"\x7fELF" + bytes(range(256)) * 50, "binary"),
        (
            b"[12.1] NVRM: Xid (PCI:0000:81:00): 79, pid=1, GPU has fallen off the bus.\n",
            "Xid 79: a GPU has fallen off the bus",
        ),
        (b"[12.1] NVRM: Xid (PCI:0000:81:00): 31, pid=1, MMU Fault\n", "Xid errors of a GPU"),
        (b"{'loss': 1.0, 'grad_norm': 0.4, 'epoch': 0.0}\n" * 3, "a training log"),
        (b" 1%|#    | 10/1000 [12:01<30:11,  1.27s/it, loss=0.1]\n", "gpucost profile --"),
        (
            b" 1%|# | 14/1310 [02:13<3:25:11, 9.50s/it]\nCUDA out of memory. Tried to allocate\n",
            "ran out of GPU memory; this log says nothing of its dollars",
        ),
    ],
)
def test_what_is_no_telemetry_is_refused_with_its_reason(
    content: bytes, says: str, tmp_path: Path
) -> None:
    """Each known kind of other content is refused with a sentence that names it."""
    assert says in refused(tmp_path, content)


@pytest.mark.parametrize("form", ["{}", "[{}]", "\ufeff {}"])
@pytest.mark.parametrize("words", ['"startedAt": "now"', '"gpu_nvidia": []', '"traceEvents": []'])
def test_a_profile_is_one_whatever_words_of_others_it_holds(form: str, words: str) -> None:
    """The schema that stands first settles it."""
    text = f'{{"schema": "gpucost.profile/v1", "job": {{"name": "a", {words}}}}}'
    assert recognize("a.json", form.replace("{}", text).encode(), Hints()) is None


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"status":"success","a":', '{"_timestamp":['])
def test_deep_nesting_is_refused(opening: str, tmp_path: Path) -> None:
    """100,000 open brackets are an input error, not a recursion error."""
    assert "nested too deeply" in refused(tmp_path, opening.encode() * 100_000)


def test_random_bytes_are_refused_by_their_head(tmp_path: Path) -> None:
    """A large binary file is refused before the rest of it is read."""
    file = tmp_path / "random.bin"
    file.write_bytes(random.Random(1).randbytes(4_000_000))  # noqa: S311 - noise, not a secret
    with Stream(str(file)) as stream, pytest.raises(InputError, match="binary"):
        recognize(stream.name, stream.head, Hints())
    with file.open("rb") as raw:
        Stream("-", raw)
        assert raw.tell() <= 2 * HEAD_BYTES


def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    """Data that unpacks to far more than logs do is refused while it unpacks."""
    bomb = gzip.compress(HEADER.encode() + b"\0" * 200_000_000, 9)
    assert "unpacks to more than" in refused(tmp_path, bomb)
    assert MOST_BYTES > 200_000_000


@pytest.mark.parametrize("cut", [5, 20, 60])
def test_a_cut_gzip_file_is_refused(cut: int, tmp_path: Path) -> None:
    """Packed data that ends early says so."""
    assert "damaged or cut off" in refused(
        tmp_path, gzip.compress((HEADER + ROW * 9).encode())[:cut]
    )


def test_an_unknown_format_name_lists_the_known_ones(tmp_path: Path) -> None:
    """`--format` with a wrong name names all formats."""
    said = refused(tmp_path, ROW.encode(), Hints(format="excel"))
    assert all(row.name in said for row in formats())


@pytest.mark.parametrize(
    ("encoded", "what"),
    [
        ((HEADER + ROW).encode("utf-8-sig"), "UTF-8 with a byte-order mark"),
        ((HEADER + ROW).encode("utf-16"), "UTF-16 with a byte-order mark"),
        ((HEADER + ROW).encode("utf-16-le"), "UTF-16 without one"),
        ((HEADER + ROW).encode("utf-16-be"), "UTF-16, big end first, without one"),
        (HEADER.encode() + b"\0" * 900 + ROW.encode(), "a hole of NULs"),
        (HEADER.rstrip().encode() + b"\0" * 900 + ROW.encode(), "a hole that took a line's end"),
    ],
)
def test_encodings_come_out_as_the_same_text(encoded: bytes, what: str) -> None:
    """Whatever wrote the file, the text is the same."""
    assert decode(encoded) == HEADER + ROW, what


def test_a_log_truncated_under_its_writer_is_read_after_the_hole(tmp_path: Path) -> None:
    """Zeros before the first line, longer than the head, are skipped."""
    file = tmp_path / "holed.csv"
    file.write_bytes(b"\0" * (3 * HEAD_BYTES) + (HEADER + ROW).encode())
    (profile,) = read_source(str(file), Hints())
    assert profile.gpus[0].metrics["util.kernel_time"].mean == 0.5


STARTS = st.sampled_from(
    [
        b"",
        HEADER.encode(),
        b"# gpu pwr sm\n# Idx W %\n",
        b"# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL",
        b'{"status":"success","data":{"resultType":"matrix","result":[',
        b'{"_timestamp":1,"system.gpu.0.gpu":5}\n',
        b'{"schema":"gpucost.profile/v1",',
        b"\x1f\x8b\x08",
        b"\xff\xfe",
        b"time;gpu util;memory used\n",
    ]
)


@given(start=STARTS, rest=st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(
    start: bytes, rest: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No content raises anything but an input error."""
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_bytes(start + rest)
    with contextlib.suppress(InputError):
        assert_writable(read_source(str(file), Hints()))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(metric=JSON, values=JSON, number=JSON)
def test_any_json_values_are_read_or_refused(
    metric: object, values: object, number: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """JSON of the right outline with wrong insides raises nothing but an input error."""
    named = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0"}
    answers = [
        {
            "status": "success",
            "data": {"resultType": "matrix", "result": [{"metric": m, "values": v}]},
        }
        for m, v in ((metric, [[1, "5"]]), (named, values), (named, [[1, number], [number, "5"]]))
    ]
    events = {"_timestamp": 1700000000, "system.gpu.0.gpu": number, "system.cpu": 5}
    file = tmp_path_factory.getbasetemp() / "any.json"
    for document in (answers, events):
        file.write_text(json.dumps(document), encoding="utf-8")
        with contextlib.suppress(InputError):
            assert_writable(read_source(str(file), Hints()))


CELLS = st.sampled_from(
    [
        "5",
        "50 %",
        "-3",
        "1e99",
        "1e400",
        "[N/A]",
        "-",
        "",
        "8192 MiB",
        "0x4",
        "Active",
        "GPU-1",
        "x",
        "9e300",
        "nan",
        "12:30:01",
        "1782907200",
        "2026/03/01 10:00:00.000",
        "2026-03-01T10:00:00Z",
    ]
)
COLUMNS = st.sampled_from(
    [
        "timestamp",
        "index",
        "uuid",
        "name",
        "utilization.gpu [%]",
        "memory.used [MiB]",
        "gpu",
        "memory.total [MiB]",
        "power.draw [W]",
        "enforced.power.limit [W]",
        "temperature.gpu",
        "clocks_event_reasons.active",
        "clocks_event_reasons_counters.sw_power_cap [us]",
    ]
)


@given(
    columns=st.lists(COLUMNS, min_size=1, max_size=7),
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=8), max_size=12),
    tz=st.sampled_from([None, "Europe/Berlin", "+08:00"]),
)
def test_any_csv_cells_are_read_or_refused(
    columns: list[str],
    rows: list[list[str]],
    tz: str | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Known headers over wild cells raise nothing but an input error."""
    file = tmp_path_factory.getbasetemp() / "any.csv"
    width = len(columns)
    # The longest rows stay ragged.
    lines = [", ".join((row * width)[:width] if len(row) < 7 else row) for row in rows]
    file.write_text("\n".join([", ".join(columns), *lines]), encoding="utf-8")
    with contextlib.suppress(InputError):
        assert_writable(read_source(str(file), Hints(tz=tz)))


WORDS = st.sampled_from(
    ["0", "1", "-", "55", "5.5", "1e400", "x", "#", "NaN", "+Inf", "20260301", "10:00:00", "{", '"']
)


@given(lines=st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=8))
@pytest.mark.parametrize(
    ("head", "lead"),
    [
        ("# gpu pwr sm mem fb tviol", ""),
        ("#Date Time gpu sm", ""),
        ("# Time gpu sm", ""),
        ("# TYPE DCGM_FI_DEV_GPU_UTIL gauge", 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} '),
        ("# TYPE x counter", 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",...} '),
    ],
)
def test_any_words_are_read_or_refused(
    head: str, lead: str, lines: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Known headers over wild lines raise nothing but an input error."""
    file = tmp_path_factory.getbasetemp() / "any.txt"
    file.write_text("\n".join([head, *(lead + line for line in lines)]), encoding="utf-8")
    with contextlib.suppress(InputError):
        assert_writable(read_source(str(file), Hints()))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"all_power": 14.0, "gpu_usage": [1398, 0.62], "pcpu_usage": [4424, 0.2]}', "macmon"),
        ("*** Sampled system activity (Mon Sep 1) ***\nGPU Power: 3 mW", "powermetrics"),
        ("+-----+\n| npu-smi 25.3.rc1    Version: 25.3.rc1 |\n+-----+\n", "npu-smi"),
        ("====\n        Slurm Job Statistics\n====\n   Job ID: 7\n", "jobstats"),
        ("NAME    CPU(cores)   CPU%\nn1      1523m   19%\n", "kubectl top"),
        ("Time (%),Total Time (ns),Instances,Avg (ns)\n61.2,1,2,3\n", "nsys stats"),
        ("   JOBID PARTITION  NAME USER ST\n  207   gpu pretrain  ana  R\n", "squeue"),
        ("user;gpu;hours\nana;3;40\n", "a list of reservations"),
    ],
)
def test_a_tool_of_another_kind_is_named_and_not_answered_with_nvidia_smi(
    text: str, kind: str
) -> None:
    """A Mac, an Ascend and a queue have no nvidia-smi; the sentence says what there is to do."""
    with pytest.raises(UnknownFormatError, match=kind) as caught:
        recognize("log", text.encode(), Hints())
    assert "--query-gpu" not in str(caught.value)


@pytest.mark.parametrize("line", ["[04-03-2021 @ 13:32:39] > Temp: 58C", "[DF_3 (88K)] -> READ: 5"])
def test_a_line_that_begins_with_a_bracket_is_no_damaged_json(line: str) -> None:
    """The first line is shown, and nothing is said of JSON."""
    with pytest.raises(UnknownFormatError, match="it begins") as caught:
        recognize("log", f"{line}\n".encode() * 9, Hints())
    assert "JSON" not in str(caught.value)
