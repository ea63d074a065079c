"""Reads every feed, checks what came, and makes one signed catalog of it.

    python -m research.publish_prices publish FOLDER REPOSITORY_URL [OPTIONS OF prices update]
    python -m research.publish_prices key

FOLDER/prices/PROVIDER.csv are dated rows that only grow; a feed that fails leaves its rows as they
are and is named in FOLDER/failures.md. FOLDER/catalog.gz is what is published, published.toml tells
a wheel its address and key. PRICES_KEY is the secret half of an Ed25519 key, 64 hex digits: `key`
prints a pair. Without it nothing is published, and a wheel gets no address.

Ed25519 and not GitHub's attestation alone, as a plan has two seconds for it and no way to GitHub's
log; .github/workflows/prices.yml makes the attestation beside it, for `gh attestation verify`.
"""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pricing.catalog.offer import Offer, row_from_offer
from pricing.refresh import store
from pricing.refresh.integrity_gate import offer_faults

KEY = "PRICES_KEY"
ASSET = "releases/download/prices/catalog.gz"


class UnpublishedError(Exception):
    """Nothing is published; the sentence says why."""


def publish(folder: Path, repository: str, options: list[str]) -> str:
    """Read the feeds into a folder, check its rows, write the catalog; return one line of it.

    Raises:
        UnpublishedError: no feed answered, a row fails a check, or there is no key.
    """
    key = signing_key()
    updated = _gpucost(folder, "prices", "update", "-f", "json", *options)
    failures = re.findall(r"^(?:warning|error): (.+)$", updated.stderr, re.MULTILINE)
    (folder / "failures.md").write_text("".join(f"- {text}\n" for text in failures), "utf-8")
    if updated.returncode and not any((folder / "prices").glob("*.csv")):
        raise UnpublishedError(f"no prices: {updated.stderr.strip()}")
    stored = store.load(folder / "prices")
    doubts = [f"{offer.place}: {why}" for offer in stored.offers for _, why in offer_faults(offer)]
    if stored.problems or doubts:
        raise UnpublishedError("; ".join((*stored.problems, *doubts)))
    now = datetime.now(UTC).replace(microsecond=0)
    (folder / "catalog.gz").write_bytes(pack(stored.offers, now, key.sign))
    public = key.public_key().public_bytes_raw().hex()
    address = f'url = "{repository}/{ASSET}#{public}"\npublished = {now.isoformat()}\n'
    (folder / "published.toml").write_text(address, encoding="utf-8")
    read = sum(offer.as_of == now.date() for offer in stored.offers)
    return f"{len(stored.offers):,} rows, {read:,} read today, {len(failures)} feeds failed"


def pack(offers: Iterable[Offer], at: datetime, sign: Callable[[bytes], bytes]) -> bytes:
    """Return the catalog of some rows as it is published; the same rows and time, the same bytes.

    Args:
        offers: the rows of all providers.
        at: when it is made.
        sign: returns the signature of what the catalog states of itself.
    """
    ordered = sorted(offers, key=lambda offer: (offer.provider, *store.row_order(offer)))
    rows = [{"provider": offer.provider, **row_from_offer(offer)} for offer in ordered]
    text = io.StringIO()
    writer = csv.DictWriter(text, ("provider", *store.HEADER), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    statement = json.dumps(
        {
            "schema": store.PUBLISHED_FORM,
            "published": at.isoformat(timespec="seconds"),
            "rows": len(rows),
            "providers": Counter(row["provider"] for row in rows),
            "sha256": store.hashed(text.getvalue()),
        },
        sort_keys=True,
    ).encode()
    signature = sign(statement).hex().encode()
    return gzip.compress(b"\n".join((signature, statement, text.getvalue().encode())), mtime=0)


def _gpucost(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GPUCOST_CACHE_DIR": str(folder), "GPUCOST_OFFLINE": "1"}
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "gpucost", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def signing_key() -> Ed25519PrivateKey:
    """Return the key that PRICES_KEY holds.

    Raises:
        UnpublishedError: there is none, or it is not one.
    """
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(os.environ.get(KEY, "")))
    except ValueError:
        raise UnpublishedError(
            f"{KEY} is not 64 hex digits. Make a pair: python -m research.publish_prices key; "
            f"set its secret half: gh secret set {KEY}"
        ) from None


def main(words: list[str]) -> int:
    """Run one of the two; return the exit code."""
    try:
        match words:
            case ["publish", folder, repository, *options]:
                sys.stdout.write(f"{publish(Path(folder), repository, options)}\n")
            case ["key"]:
                key = Ed25519PrivateKey.generate()
                public = key.public_key().public_bytes_raw().hex()
                sys.stdout.write(f"secret {key.private_bytes_raw().hex()}\npublic {public}\n")
            case _:
                sys.stderr.write(f"{__doc__}\n")
                return 2
    except UnpublishedError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
