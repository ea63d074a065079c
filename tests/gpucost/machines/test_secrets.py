"""Secrets of every odd shape are planted, and looked for in all that commands leave behind."""

import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gpucost.conftest import Call, Ran, Write
from tests.gpucost.documents import AS_OF, training
from tests.providers.fakes.account import contract
from tests.providers.fakes.digitalocean import DigitalOcean, Fault
from tests.providers.fakes.server import serving
from tests.providers.fakes.sizes import the_sizes

TOKENS = {
    "as DigitalOcean writes it": "dop_v1_" + "0c9f2b7ae14d6835" * 4,
    "quotes, percent, a shell's": "p%25\"q'r$(id)`x`;\\n&<b>-0123456789",
    "a url's": "abc/def+ghi=jkl?mno&pqr#stu:vwx@yz0",
}
LAUNCH = (
    "provision",
    "--type",
    "digitalocean/gpu-h100x8-640gb",
    "--ttl",
    "2h",
    "--yes",
    "--allow-stale",
    "--no-self-destroy",
)


pytestmark = pytest.mark.usefixtures("login")


@pytest.fixture(params=TOKENS)
def token(request: pytest.FixtureRequest) -> str:
    """An odd token."""
    return TOKENS[request.param]


@pytest.fixture
def cloud(token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DigitalOcean]:
    """A DigitalOcean of that token; the variables hold other secrets, too."""
    fake = DigitalOcean(token=token, sizes=the_sizes(), contract=contract())
    for size in fake.sizes:
        if size["slug"] == "gpu-h100x8-640gb":
            size |= {"regions": ["nyc2"], "price_hourly": 35.28}
    with serving(fake, tmp_path / "ca.pem") as address:
        monkeypatch.setenv("DIGITALOCEAN_TOKEN", token)
        monkeypatch.setenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN", token[::-1])
        monkeypatch.setenv("GPUCOST_DIGITALOCEAN_ENDPOINT", address)
        monkeypatch.setenv("GPUCOST_DIGITALOCEAN_CA", str(tmp_path / "ca.pem"))
        yield fake


def _pieces(token: str) -> set[str]:
    """Each half of it, in each way in which a program may write it."""
    half = len(token) // 2
    halves = [one[at : at + half] for one in (token, token[::-1]) for at in (0, half)]
    writings = (str, lambda one: repr(one)[1:-1], lambda one: json.dumps(one)[1:-1])
    quoted = (urllib.parse.quote, urllib.parse.quote_plus)
    return {write(one) for write in (*writings, *quoted) for one in halves}


def _check(ran: Ran, token: str, home: Path) -> None:
    """Nothing printed, and no file, holds a half of a secret."""
    told = ran.out + ran.err
    files = [path for path in home.rglob("*") if path.is_file() and path.suffix != ".pem"]
    for piece in _pieces(token):
        assert piece not in told
        assert not [path for path in files if piece.encode() in path.read_bytes()]


COMMANDS = (
    LAUNCH,
    (*LAUNCH, "--dry-run", "-f", "json"),
    ("list", "-f", "json"),
    ("show", "RUN"),
    ("doctor",),
    ("prices", "update", "--provider", "digitalocean"),
    ("reap", "--yes"),
    ("down", "--all", "--yes"),
    ("iam-policy",),
)


def test_no_command_leaves_a_secret(
    cloud: DigitalOcean, token: str, call: Call, tmp_path: Path
) -> None:
    """A whole life of a launch, with a provider that answers as it should."""
    run = ""
    for words in COMMANDS:
        ran = call(*(run if word == "RUN" else word for word in words))
        if words is LAUNCH:
            run = call("list", "-f", "json").json["runs"][0]["run"]
        _check(ran, token, tmp_path)
    bodies = json.dumps(cloud.requests)
    assert not any(piece in bodies for piece in _pieces(token))


@pytest.mark.parametrize("writing", ["plain", "quoted", "json", "half"])
def test_a_provider_that_tells_the_token_tells_it_to_nobody(
    writing: str, cloud: DigitalOcean, token: str, call: Call, tmp_path: Path
) -> None:
    """An answer that repeats the Authorization header reaches neither terminal nor journal."""
    wrong = {
        "plain": token,
        "quoted": urllib.parse.quote(token),
        "json": json.dumps(token),
        "half": token[: len(token) // 2],
    }[writing]
    assert call(*LAUNCH).code == 0
    body = json.dumps({"id": "forbidden", "message": f"no scope: {wrong} and {token[::-1]}"})
    for command_line in (LAUNCH, ("list",), ("reap", "--yes"), ("doctor",)):
        for path in ("/v2/droplets", "/v2/account", "/v2/sizes", "/v2/tags", "/v2/firewalls"):
            fault = Fault(path=path, status=403, body=body.encode(), times=30, below=True)
            cloud.faults.append(fault)
        ran = call(*command_line)
        assert "[secret]" in ran.err + ran.out
        _check(ran, token, tmp_path)
        cloud.faults.clear()


FILES = (
    ("plan", "--as-of", AS_OF, "--provider", "aws", "-o", "plan.json", "--report", "plan.md"),
    ("report", "plan.json", "-o", "again.md"),
    ("recipe", "plan.json", "-o", "recipe.json"),
    ("export", "plan.json", "--to", "focus", "-o", "focus.csv"),
)


@pytest.mark.parametrize("shape", TOKENS)
def test_no_file_that_was_asked_for_holds_a_secret(
    shape: str,
    call: Call,
    write: Write,
    empty_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A token in the name of a job reaches neither -o files nor the terminal; they stay whole."""
    token = TOKENS[shape]
    monkeypatch.setenv("DIGITALOCEAN_TOKEN", token)
    write("profile.json", training(f"train {token} now"))
    for words in FILES:
        ran = call(*words)
        assert ran.code == 0, ran.err
        written = (empty_folder / words[words.index("-o") + 1]).read_text(encoding="utf-8")
        assert "[secret]" in written
        told = ran.out + ran.err + written
        assert not any(piece in told for piece in _pieces(token))
    assert "[secret]" in (empty_folder / "plan.md").read_text(encoding="utf-8")
    json.loads((empty_folder / "plan.json").read_text(encoding="utf-8"))
