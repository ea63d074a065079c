"""The redactor: no secret, however it is written, and no half of one, leaves a text that passes."""

import base64
import json
import re
import shlex
import sys
import urllib.parse
from collections.abc import Callable
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.redaction import HIDDEN, VARIABLES, RedactedStream, learn, redact, redacted_output
from providers.registry import CLOUDS

TOKEN = "dop_v1_" + "0c9f2b7ae14d6835" * 4
ODD = {
    "plain": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "a newline": "first-half-of-it\nsecond-half-of-it",
    "quotes": 'it\'s a "quoted" pass\'phrase"',
    "percent": "100%25-of-%s-and-%(all)s",
    "unicode": "tökén-ßecret-密码-пароль",
    "a backslash": "back\\slash\\n-not-a-newline",
    "blanks": "correct horse  battery\tstaple",
    "a shell's": "$(touch x); `id` && {a,b} # no",
    "markup": '<b>&amp;"secret"</b>-of-mine',
    "a url": "abc/def+ghi=jkl?mno&pqr#stu",
}
WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in Python": repr,
    "in ASCII Python": ascii,
    "in JSON": json.dumps,
    "in JSON with letters": lambda secret: json.dumps(secret, ensure_ascii=False),
    "for a shell": shlex.quote,
    "in a path": urllib.parse.quote,
    "in a query": urllib.parse.quote_plus,
    "on one line": lambda secret: " ".join(secret.split()),
    "in base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "as bytes": lambda secret: repr(secret.encode()),
    "read as Latin-1": lambda secret: secret.encode().decode("latin-1"),
    "its first half": lambda secret: secret[: (len(secret) + 1) // 2],
    "its second half": lambda secret: secret[len(secret) // 2 :],
}


def _pieces(secret: str) -> set[str]:
    """Every part of a secret of half its length."""
    half = (len(secret) + 1) // 2
    return {secret[at : at + half] for at in range(len(secret) - half + 1)}


@pytest.mark.parametrize("shape", ODD)
@pytest.mark.parametrize("writing", WRITTEN)
@pytest.mark.parametrize("variable", ["DIGITALOCEAN_TOKEN", "AWS_SESSION_TOKEN"])
def test_a_secret_is_hidden_however_it_is_written(shape: str, writing: str, variable: str) -> None:
    """Each odd shape in each writing: no half of the secret is left, the rest of the text is."""
    secret = ODD[shape]
    told = redact(f"before [{WRITTEN[writing](secret)}] after", {variable: secret})
    assert HIDDEN in told
    assert not any(piece in told for piece in _pieces(secret))
    assert told.startswith("before [")
    assert told.endswith("] after")


@pytest.mark.parametrize("variable", VARIABLES)
def test_every_variable_is_known(variable: str) -> None:
    """Both tokens, AWS' keys and session tokens, and passphrases are hidden."""
    assert redact(f"x {ODD['plain']} y", {variable: ODD["plain"]}) == f"x {HIDDEN} y"


def test_the_secrets_of_every_provider_are_known() -> None:
    """What a provider calls a secret is hidden, and what is named like one is called one."""
    variables = [one for provider in CLOUDS.values() for one in provider.variables]
    assert {one.name for one in variables if one.secret} <= set(VARIABLES)
    named = {one.name for one in variables if re.search("TOKEN|SECRET|API_KEY", one.name)}
    assert named <= {one.name for one in variables if one.secret}


def test_what_was_learned_is_hidden() -> None:
    """A key that an SDK found in a file is hidden once it was learned."""
    secret = ODD["plain"][::-1]
    assert secret in redact(secret, {})
    learn(secret, None, "")
    assert redact(secret, {}) == HIDDEN


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        TOKEN[: len(TOKEN) // 2],
        "AKIA" + "Q7" * 8,
        "ASIA" + "Z2" * 8,
        "Authorization: Bearer abcdefghijklmnop1234",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
    ],
)
def test_keys_are_told_by_their_shape(text: str) -> None:
    """A key that stands in the wrong variable is hidden, too."""
    told = redact(f"told: {text}.", {})
    assert HIDDEN in told
    assert text not in told


@given(text=st.text(max_size=200), secret=st.text(min_size=16, max_size=80))
def test_text_without_the_secret_is_left_alone(text: str, secret: str) -> None:
    """Where no eight letters in a row are the secret's in any writing, nothing changes."""
    if HIDDEN not in redact(text, {"DIGITALOCEAN_TOKEN": secret}):
        assert redact(text, {"DIGITALOCEAN_TOKEN": secret}) == text


@given(before=st.text(max_size=60), after=st.text(max_size=60), secret=st.text(min_size=16))
def test_no_half_of_a_secret_is_left(before: str, after: str, secret: str) -> None:
    """Whatever stands around a secret, no half of it comes through."""
    told = redact(before + secret + after, {"DIGITALOCEAN_TOKEN": secret})
    around = redact(before, {}) + redact(after, {}) + HIDDEN
    assert not any(piece in told and piece not in around for piece in _pieces(secret))


def test_a_short_value_is_a_word_and_no_secret() -> None:
    """A token of one letter hides no letter of any text."""
    assert redact("all is well", {"DIGITALOCEAN_TOKEN": "l"}) == "all is well"


def test_a_stream_passes_all_it_writes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """print, writelines and bytes to a redacted standard output hold no secret; isatty stays."""
    monkeypatch.setenv("SSHPASS", ODD["unicode"])
    inner = StringIO()
    stream = RedactedStream(inner)
    print("told:", ODD["unicode"], file=stream)  # type: ignore[call-overload] # it writes
    stream.writelines([ODD["unicode"], "\n"])
    assert inner.getvalue() == f"told: {HIDDEN}\n{HIDDEN}\n"
    assert stream.isatty() is False


def test_bytes_pass_through_it_too(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What is written below the text stream is redacted as well, and the streams come back."""
    monkeypatch.setenv("SSHPASS", ODD["unicode"])
    before = sys.stdout
    with redacted_output():
        sys.stdout.buffer.write(f"<{ODD['unicode']}>".encode())
        sys.stdout.flush()
    assert sys.stdout is before
    assert capfdbinary.readouterr().out == f"<{HIDDEN}>".encode()
