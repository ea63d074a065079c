"""What holds a fake against an OpenAPI document notices what does not keep it."""

import json

import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request, Response

from pricing.errors import ProviderError
from providers.lambda_cloud.inventory import owner_of
from tests.providers.fakes.openapi import Contract

_NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_CONTENT = {"application/json": {"schema": _NAMED}}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "a provider", "version": "1"},
    "paths": {
        "/things": {
            "post": {
                "requestBody": {"content": _CONTENT, "required": True},
                "responses": {"200": {"description": "made", "content": _CONTENT}},
            }
        }
    },
}


@pytest.mark.parametrize(
    ("path", "sent", "answered", "wrong"),
    [
        ("/things", {"name": "a"}, {"name": "a"}, ""),
        ("/things", {"nom": "a"}, {"name": "a"}, "InvalidRequestBody"),
        ("/things", {"name": "a"}, {"name": 7}, "InvalidData"),
        ("/others", {"name": "a"}, {"name": "a"}, "PathNotFound"),
    ],
)
def test_a_wrong_request_and_a_wrong_answer_are_told(
    path: str, sent: dict[str, str], answered: dict[str, object], wrong: str
) -> None:
    """Wherever the fake is served; and again when it is repeated."""
    contract = Contract(document=DOCUMENT, host="https://api.example.org")
    asked = EnvironBuilder(path=path, base_url="https://127.0.0.1:7/", method="POST", json=sent)
    request = Request(asked.get_environ())
    response = Response(json.dumps(answered), 200, content_type="application/json")
    for told in [contract.violation(request, response) for _ in range(2)]:
        assert wrong in told if wrong else told == ""
        assert told == "" or told.startswith(f"POST {path}: ")


def test_lambdas_audit_log_is_read_in_both_its_forms() -> None:
    """Version 1.10.0 of the document has the events themselves; before, they were in a page."""
    events = [{"resource_owner_lrn": None}, {"resource_owner_lrn": "lrn:a"}]
    assert owner_of(events) == owner_of({"events": events, "page_token": None}) == "lrn:a"
    for nothing in ({}, [], None, "no", [7], {"events": 7}):
        with pytest.raises(ProviderError, match="does not say whose account"):
            owner_of(nothing)
