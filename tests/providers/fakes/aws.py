"""AWS: moto's EC2, with a Price List, spot prices and faults of our own in front of it.

moto has no pricing service and no spot prices; both are answered here from plain values, in pages.
"""

import io
import json
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from moto.core import responses
from moto.ec2.models.instance_types import (
    INSTANCE_TYPE_OFFERINGS,
    INSTANCE_TYPES,
    InstanceTypeBackend,
)
from moto.server import create_backend_app
from werkzeug.wrappers import Response

PER_PAGE = 2
_WITHOUT_GPUS = ("m5.", "t2.")
Price = tuple[str, str, str]
"""Instance type, region (of spot: zone), dollars as AWS prints them."""


@cache
def moto() -> Any:
    """Moto's server, started once a process; `AwsAccount.reset` empties what it holds.

    It sells every type with GPUs and few without: printing and reading all 1,400 types was most of
    the time of every launch. What it asks its own classes at every call, it is told once.
    """
    kept = {name for name, told in INSTANCE_TYPES.items() if "GpuInfo" in told}
    kept |= {name for name in INSTANCE_TYPES if name.startswith(_WITHOUT_GPUS)}
    known = InstanceTypeBackend.instance_types
    InstanceTypeBackend.instance_types = [one for one in known if one.get("InstanceType") in kept]
    for regions in INSTANCE_TYPE_OFFERINGS.values():
        for region, offered in regions.items():
            regions[region] = [one for one in offered if one["InstanceType"] in kept]
    responses.method_names_from_class = cache(responses.method_names_from_class)
    return create_backend_app("ec2")


@cache
def moto_scheduler() -> Any:
    """Moto's EventBridge Scheduler, started when it is first asked."""
    return create_backend_app("scheduler")


@cache
def moto_cloudwatch() -> Any:
    """Moto's CloudWatch, started when it is first asked."""
    return create_backend_app("cloudwatch")


@dataclass(kw_only=True)
class Aws:
    """The fake.

    Attributes:
        on_demand: what GetProducts knows.
        spot: what DescribeSpotPriceHistory knows.
        failures: service actions that answer an error, each once: action -> (status, code).
        requests: actions in order.
    """

    on_demand: list[Price]
    spot: list[Price]
    failures: dict[str, tuple[int, str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    _ec2: Any = field(default_factory=moto)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer a request: the WSGI entry."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        target = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        action = target or form.get("Action", "")
        self.requests.append(action)
        if action in self.failures:
            return _failure(action, *self.failures[action])(environ, start_response)
        if action == "GetProducts":
            return self._products(json.loads(body))(environ, start_response)
        if action == "DescribeSpotPriceHistory":
            return self._history(form, environ)(environ, start_response)
        if environ.get("PATH_INFO", "").startswith("/schedules"):
            return moto_scheduler()(environ, start_response)
        return self._ec2(environ, start_response)

    def _products(self, asked: dict[str, Any]) -> Response:
        wanted = {one["Field"]: one["Value"] for one in asked["Filters"]}
        found = [
            price
            for price in self.on_demand
            if price[1] == wanted["regionCode"] and price[0] == wanted.get("instanceType", price[0])
        ]
        start = int(asked.get("NextToken", 0))
        answer: dict[str, Any] = {
            "FormatVersion": "aws_v1",
            "PriceList": [_product(*price, wanted) for price in found[start : start + PER_PAGE]],
        }
        if start + PER_PAGE < len(found):
            answer["NextToken"] = str(start + PER_PAGE)
        return Response(
            json.dumps(answer), HTTPStatus.OK, content_type="application/x-amz-json-1.1"
        )

    def _history(self, form: dict[str, str], environ: dict[str, Any]) -> Response:
        region = environ["HTTP_AUTHORIZATION"].partition("Credential=")[2].split("/")[2]
        wanted = {value for key, value in form.items() if key.startswith("InstanceType.")}
        items = "".join(
            f"<item><instanceType>{name}</instanceType><spotPrice>{escape(price)}</spotPrice>"
            f"<productDescription>Linux/UNIX</productDescription>"
            f"<timestamp>{form['StartTime']}</timestamp>"
            f"<availabilityZone>{zone}</availabilityZone></item>"
            for name, zone, price in self.spot
            if name in wanted and zone.startswith(region)
        )
        text = (
            '<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
            f"<spotPriceHistorySet>{items}</spotPriceHistorySet><nextToken/>"
            "</DescribeSpotPriceHistoryResponse>"
        )
        return Response(text, HTTPStatus.OK, content_type="text/xml")


def _product(name: str, region: str, dollars: str, wanted: dict[str, str]) -> str:
    """A product in the form of the Price List; prices are text with ten decimals."""
    attributes = {**wanted, "instanceType": name, "regionCode": region}
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": dollars} if dollars else {}}
    terms = {"OnDemand": {"SKU.JRTC": {"priceDimensions": {"SKU.JRTC.6YS6": dimension}}}}
    product = {"productFamily": "Compute Instance", "attributes": attributes, "sku": "SKU"}
    return json.dumps({"product": product, "serviceCode": "AmazonEC2", "terms": terms})


def _failure(action: str, status: int, code: str) -> Response:
    if action == "GetProducts":
        told = json.dumps({"__type": code, "message": "told by the fake"})
        return Response(told, status, content_type="application/x-amz-json-1.1")
    return error_response(status, code)


def error_response(status: int, code: str) -> Response:
    """An error as EC2 prints it."""
    told = (
        f"<Response><Errors><Error><Code>{code}</Code><Message>told by the fake</Message></Error>"
        "</Errors><RequestID>4d9d8375</RequestID></Response>"
    )
    return Response(told, status, content_type="text/xml")


def identity(account: str) -> Response:
    """Whose account it is, as STS prints it."""
    text = (
        '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
        f"<GetCallerIdentityResult><Account>{account}</Account></GetCallerIdentityResult>"
        "</GetCallerIdentityResponse>"
    )
    return Response(text, HTTPStatus.OK, content_type="text/xml")
