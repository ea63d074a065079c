"""Which machine it is: by firmware, environment and a metadata service, however ill that is."""

from __future__ import annotations

import http.server
import ipaddress
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from pricing.catalog.catalog import load_catalog
from telemetry.measure.identity import MachineIdentityReader, ask, clouds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SESSION = "AQ-session"
WAITS = {"hangs": 10.0, "slow": 0.3}
CODES = {"redirects": 302, "fails": 500}
WRONG = {"lies": b"<html>sign in</html>", "floods": b"a" * 3_000_000, "drips": b""}
ANSWERS = {
    "aws": {
        "/latest/meta-data/instance-id": "i-0123456789abcdef0",
        "/latest/meta-data/instance-type": "p5.48xlarge",
        "/latest/meta-data/placement/region": "us-east-1",
    },
    "gcp": {
        "/computeMetadata/v1/instance/id": "4520031799277581759",
        "/computeMetadata/v1/instance/machine-type": "projects/1/machineTypes/a2-highgpu-1g",
        "/computeMetadata/v1/instance/zone": "projects/1/zones/us-central1-a",
    },
    "azure": {
        "/metadata/instance/compute/vmId": "02aab8a4-74ef-476e-8182-f6d2ba4166a6",
        "/metadata/instance/compute/vmSize": "Standard_NC24ads_A100_v4",
        "/metadata/instance/compute/location": "westus2",
    },
    "digitalocean": {"/metadata/v1/id": "2756294", "/metadata/v1/region": "nyc2"},
    "oci": {
        "/opc/v2/instance/id": "ocid1.instance.oc1.iad.abc",
        "/opc/v2/instance/shape": "BM.GPU.A100-v2.8",
        "/opc/v2/instance/canonicalRegionName": "us-ashburn-1",
    },
}
ASKED_FOR = {"gcp": ("Metadata-Flavor", "Google"), "azure": ("Metadata", "true")}
ASKED_FOR |= {
    "oci": ("Authorization", "Bearer Oracle"),
    "aws": ("X-aws-ec2-metadata-token", SESSION),
}
EXPECTED = {
    "aws": ("i-0123456789abcdef0", "p5.48xlarge", "us-east-1"),
    "gcp": ("4520031799277581759", "a2-highgpu-1g", "us-central1"),
    "azure": ("02aab8a4-74ef-476e-8182-f6d2ba4166a6", "Standard_NC24ads_A100_v4", "westus2"),
    "digitalocean": ("2756294", None, "nyc2"),
    "oci": ("ocid1.instance.oc1.iad.abc", "BM.GPU.A100-v2.8", "us-ashburn-1"),
}
FIRMWARE = {
    "aws": {"sys_vendor": "Amazon EC2", "product_name": "p5.48xlarge"},
    "gcp": {"product_name": "Google Compute Engine"},
    "azure": {"chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"},
    "digitalocean": {"sys_vendor": "DigitalOcean"},
    "oci": {"chassis_asset_tag": "OracleCloud.com"},
    "scaleway": {"sys_vendor": "Scaleway"},
    "vultr": {"sys_vendor": "Vultr"},
}


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers as the service of the server that it belongs to is set to."""

    @property
    def service(self) -> Service:
        """What is played."""
        return self.server.service  # type: ignore[attr-defined,no-any-return]

    def do_PUT(self) -> None:
        """Give a token, where this provider has them."""
        self.say(SESSION if self.service.provider == "aws" else None)

    def do_GET(self) -> None:
        """Give what is asked for, to who asks as documented."""
        self.service.asked.append(self.path)
        name, value = ASKED_FOR.get(self.service.provider, ("Host", self.headers["Host"]))
        known = ANSWERS[self.service.provider].get(self.path.split("?")[0])
        self.say(known if self.headers.get(name) == value else None)

    def say(self, text: str | None) -> None:
        """Answer, well or ill."""
        mode, ended = self.service.mode, self.service.ended
        if mode in WAITS and ended.wait(WAITS[mode]) | (mode == "hangs"):
            return
        self.send_response(CODES.get(mode, 404 if text is None else 200))
        if mode == "redirects":
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(WRONG.get(mode, (text or "").encode()))
        while mode == "drips" and not ended.wait(0.04):
            self.wfile.write(b"i")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that has had enough closes the connection: no news."""


class Service:
    """A metadata service over real HTTP.

    Attributes:
        address: where it listens.
        mode: "well", or what is wrong with it: "slow", "hangs", "drips", "redirects", "fails",
            "lies" (a page of HTML), "floods" (megabytes).
        asked: the paths that were asked for.
    """

    def __init__(self, provider: str) -> None:
        self.mode = "well"
        self.asked: list[str] = []
        self.provider = provider
        self.ended = threading.Event()
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.service = self  # type: ignore[attr-defined]
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def row(self) -> dict[str, Any]:
        """The provider's row of the table, with this service in place of its address."""
        (row,) = (row for row in clouds() if row["provider"] == self.provider)
        return {**row, "address": self.address}


@pytest.fixture
def service() -> Iterator[Callable[[str], Service]]:
    """Start a provider's metadata service."""
    started: list[Service] = []

    def start(provider: str) -> Service:
        started.append(Service(provider))
        return started[-1]

    yield start
    for one in started:
        one.ended.set()
        one.server.shutdown()
        one.server.server_close()


def _firmware(folder: Path, words: dict[str, str]) -> Path:
    for name, text in words.items():
        (folder / name).write_text(f"{text}\n")
    return folder


@pytest.mark.parametrize("provider", sorted(EXPECTED))
def test_each_cloud_says_machine_size_and_region(
    service: Callable[[str], Service], provider: str
) -> None:
    """Asked as its documentation says, each answers in the words of the price list."""
    found = ask(service(provider).row())
    assert (
        tuple(found.get(name) for name in ("machine", "instance_type", "region"))
        == EXPECTED[provider]
    )


@pytest.mark.parametrize("mode", ["slow", "hangs", "drips", "redirects", "fails", "lies", "floods"])
def test_a_service_that_is_not_well_says_nothing(
    service: Callable[[str], Service], mode: str
) -> None:
    """Slow, hanging, redirecting, failing, lying: nothing is taken for an answer, nobody waits."""
    ill = service("gcp")
    ill.mode = mode
    done: list[dict[str, str]] = []
    thread = threading.Thread(target=lambda: done.append(ask(ill.row())), daemon=True)
    thread.start()
    thread.join(1.5)
    assert done in ([], [{}])  # what drips on is waited for by nobody
    assert "/elsewhere" not in ill.asked


@pytest.mark.parametrize("provider", sorted(FIRMWARE))
def test_firmware_names_the_provider(tmp_path: Path, provider: str) -> None:
    """Without a question to anybody the provider is known, by the price list's name."""
    folder = _firmware(tmp_path, FIRMWARE[provider])
    found = MachineIdentityReader(metadata=False, environment={}, dmi=folder).facts()
    assert found["provider"] == provider
    assert found["machine"]


def test_a_machine_that_is_no_cloud_asks_nobody(
    tmp_path: Path, service: Callable[[str], Service]
) -> None:
    """Firmware that names no cloud means no question, and an id that keeps the host's name."""
    here = service("aws")
    folder = _firmware(tmp_path, {"sys_vendor": "Dell Inc.", "product_name": "PowerEdge XE9680"})
    reader = MachineIdentityReader(environment={}, dmi=folder, table=[here.row()])
    reader.wait(2.0)
    assert here.asked == []
    assert set(reader.facts()) == {"machine"}


def test_the_service_is_asked_beside_the_measurement(
    tmp_path: Path, service: Callable[[str], Service]
) -> None:
    """The start waits for no answer; it is there once it has come, and replaces the host's id."""
    here = service("aws")
    folder = _firmware(tmp_path, {**FIRMWARE["aws"], "board_asset_tag": "not said"})
    start_s = time.monotonic()
    reader = MachineIdentityReader(environment={}, dmi=folder, table=[here.row()])
    assert time.monotonic() - start_s < 60.0
    reader.wait(60.0)
    assert reader.facts() == {
        "provider": "aws",
        "machine": "i-0123456789abcdef0",
        "instance_type": "p5.48xlarge",
        "region": "us-east-1",
    }
    off = MachineIdentityReader(metadata=False, environment={}, dmi=folder, table=[here.row()])
    here.asked.clear()
    off.wait(1.0)
    assert here.asked == []
    assert "region" not in off.facts()


def test_a_proxy_is_never_asked(
    service: Callable[[str], Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a proxy is set for all, the metadata service is asked directly still."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(service("digitalocean").row())["machine"] == "2756294"


def test_containers_of_a_provider_say_it_by_their_variables(tmp_path: Path) -> None:
    """RunPod names pod and data centre in the environment; there is no service to ask."""
    environment = {"RUNPOD_POD_ID": "a1b2c3", "RUNPOD_DC_ID": "EU-RO-1"}
    found = MachineIdentityReader(environment=environment, dmi=tmp_path).facts()
    assert found == {"provider": "runpod", "machine": "a1b2c3", "region": "EU-RO-1"}


def test_pods_of_one_node_stand_on_one_machine(tmp_path: Path) -> None:
    """The node's name, where it is known, is the machine: as a digest, the same for each pod."""
    one, other = (
        MachineIdentityReader(environment={"NODE_NAME": name}, dmi=tmp_path).facts()["machine"]
        for name in ("gpu-7", "gpu-8")
    )
    again = MachineIdentityReader(environment={"NODE_NAME": "gpu-7"}, dmi=tmp_path).facts()
    assert one == again["machine"] != other
    assert "gpu-7" not in one


def test_the_table_asks_only_what_it_may() -> None:
    """Addresses are link-local numbers, paths hold no credentials, names are the price list's."""
    sold = {offer.provider for offer in load_catalog().offers}
    for row in clouds():
        assert row["provider"] in sold
        assert row["source"]
        assert row["as_of"]
        if "address" in row:
            assert ipaddress.ip_address(row["address"]).is_link_local
            asked = " ".join(row["paths"].values())
            for word in ("token", "credential", "iam", "user", "attributes", "key", "json"):
                assert word not in asked
