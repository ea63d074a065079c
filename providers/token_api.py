"""A JSON API that takes one token: read from the environment, called, and what an answer means.

What changes something is sent once: such an API knows no idempotency. Reads are repeated where that
may help.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from pricing.errors import InputError, MissingCredentialsError, ProviderError
from providers import interface
from providers.ownership_tags import OwnershipTags, latest
from providers.redaction import learn, redact

JsonDocument = dict[str, Any]
_MOST_TEXT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAccess:
    """Where and as whom to call.

    Attributes:
        token: never printed.
        endpoint: an https address without a slash at its end; None: the public one.
        ca: file of the certificate authority to trust instead of the system's.
    """

    token: str = field(repr=False)
    endpoint: str | None = None
    ca: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenVariables:
    """The variables that name an access, and what is said where they do not.

    Attributes:
        token: variable of the token.
        endpoint: variable of an address in place of the public one.
        ca: variable of the file of a certificate authority.
        missing: what to do where there is no token, behind the variable's name.
        word: what the provider calls a token.
    """

    token: str
    endpoint: str
    ca: str
    missing: str
    word: str = "token"

    def read(self, environment: Mapping[str, str]) -> TokenAccess:
        """Return the access that the environment names.

        Raises:
            MissingCredentialsError: there is no token.
            InputError: the token cannot be one, the endpoint is not https, or the certificate file
                is not there.
        """
        token = environment.get(self.token, "").strip()
        if not token:
            raise MissingCredentialsError(f"{self.token} {self.missing}")
        if not token.isprintable() or " " in token or not token.isascii():
            again = f"copy the {self.word} again"
            raise InputError(f"{self.token} holds blanks or control characters; {again}.")
        endpoint = environment.get(self.endpoint, "").strip().rstrip("/") or None
        if endpoint is not None and not endpoint.startswith("https://"):
            raise InputError(
                f"{self.endpoint} is {endpoint!r:.80}; a {self.word} is sent over https only. "
                "Write https://HOST[:PORT]."
            )
        ca = Path(environment[self.ca]) if environment.get(self.ca) else None
        if ca is not None and not ca.is_file():
            problem = f"{self.ca} names {ca}, and there is no such file"
            raise InputError(f"{problem}; it takes a PEM file.")
        return TokenAccess(token=token, endpoint=endpoint, ca=ca)


class RefusedCallError(ProviderError):
    """The provider refused a call; nothing was done.

    Attributes:
        status: of the answer.
        code: of its error, such as "global/object-does-not-exist"; empty: none.
    """

    def __init__(self, problems: str | Iterable[str], status: int = 0, code: str = "") -> None:
        super().__init__(problems)
        self.status, self.code = status, code


@dataclass(kw_only=True)
class TokenApi(ABC):
    """Calls of the API of an account.

    Attributes:
        access: where and as whom.
        on_date: is told the Date header of every answer.
        title: of the provider, for people.
        pause_s: before a throttled call may be repeated, where the answer does not say it.
    """

    title: ClassVar[str]
    pause_s: ClassVar[float] = interface.ThrottledError.wait_s

    access: TokenAccess
    on_date: Callable[[str], object] = str

    def get(self, path: str, doing: str, **params: str | int) -> Any:  # noqa: ANN401 - any JSON
        """Return what a GET answers.

        Raises:
            ProviderError: no answer that can be read.
        """
        return self._call("GET", path, None, doing, params)

    def find(self, path: str, doing: str) -> JsonDocument | None:
        """Return what a GET answers; None where the API knows no such thing.

        Raises:
            ProviderError: no answer that says whether it is there.
        """
        try:
            answer = self.get(path, doing)
        except RefusedCallError as error:
            if self.is_unknown(error):
                return None
            raise
        if not isinstance(answer, dict):
            raise ProviderError(f"{self.title}: {doing}: the answer cannot be read.")
        return answer

    def change(self, method: str, path: str, body: Mapping[str, Any] | None, doing: str) -> Any:  # noqa: ANN401 - any JSON
        """Send one call that changes something, once, and return its answer.

        Raises:
            NoCapacityError, QuotaError, ThrottledError, RefusedCallError: nothing was done.
            UncertainError: nobody knows.
        """
        return self._call(method, path, body, doing)

    def delete(self, path: str, doing: str) -> bool:
        """Send one DELETE; False where the API knows no such thing.

        Raises:
            ProviderError: as `change`.
        """
        try:
            self.change("DELETE", path, None, doing)
        except RefusedCallError as error:
            if self.is_unknown(error):
                return False
            raise
        return True

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        doing: str,
        params: Mapping[str, str | int] = MappingProxyType({}),
    ) -> Any:  # noqa: ANN401 - any JSON
        learn(self.access.token)
        failed = f"{self.title}: {doing} failed"
        try:
            status, headers, content = self._send(method, path, body, params)
        except Exception as error:  # noqa: BLE001 - urllib3, requests and azure raise their own
            raise interface.UncertainError(
                _short(f"{failed}: {type(error).__name__}: {error}")
            ) from None
        self.on_date(headers.get("Date", ""))
        try:
            document = json.loads(content) if content else None
            if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
                return self._data(document)
        except (ValueError, KeyError, TypeError):
            document = None
        code, detail = self._reason(document)
        sentence = _short(f"{failed}: HTTP {status}: {f'{code} {detail}'.strip()}")
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            throttled = interface.ThrottledError(sentence)
            wait = headers.get("Retry-After", "")
            throttled.wait_s = float(wait) if wait.isdigit() else self.pause_s
            raise throttled
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status < HTTPStatus.BAD_REQUEST:
            raise interface.UncertainError(f"{sentence} (an answer that cannot be read)")
        raise self._refusal(sentence, status, (code, detail))

    @abstractmethod
    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        params: Mapping[str, str | int],
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body; a GET is repeated where that may help."""

    @staticmethod
    def _data(document: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return what an answer is about.

        Raises:
            ValueError, KeyError, TypeError: it is not one of the API's.
        """
        return document

    @staticmethod
    @abstractmethod
    def _reason(document: object) -> tuple[str, str]:
        """Return code and sentence of an error's answer; empty where it has none."""

    @staticmethod
    def is_unknown(error: RefusedCallError) -> bool:
        """Return whether an answer is that there is no such thing."""
        return error.status == HTTPStatus.NOT_FOUND

    @staticmethod
    @abstractmethod
    def _refusal(sentence: str, status: int, reason: tuple[str, str]) -> ProviderError:
        """Return the error of a refused call, by the code and the words of its reason."""


def _short(text: str) -> str:
    return redact(" ".join(text.split()))[: _MOST_TEXT + 80]


@dataclass(kw_only=True)
class TokenCloud(interface.Cloud):
    """An account that is reached with one token.

    Attributes:
        access: where and as whom.
        title: of the provider, for people.
        page: where the user ends things by hand.
    """

    title: ClassVar[str]
    page: ClassVar[str]

    access: TokenAccess

    @abstractmethod
    def _items(self, kind: str) -> Iterable[JsonDocument]:
        """Yield every item of a kind that the API lists."""

    @abstractmethod
    def _item(self, kind: str, id_: str) -> JsonDocument | None:
        """Return an item by its id; None where the API knows no such one."""

    @staticmethod
    @abstractmethod
    def _marks_of(
        kind: str, item: JsonDocument, marks_by_run: interface.MarksByRun
    ) -> OwnershipTags | None:
        """Return whose an item is, by what it carries, else by its name; None: not ours."""

    @staticmethod
    @abstractmethod
    def _is_named(kind: str, item: JsonDocument) -> bool:
        """Return whether an item is named as ours are."""

    @staticmethod
    @abstractmethod
    def _resource(kind: str, item: JsonDocument, marks: OwnershipTags) -> interface.Resource:
        """Return an item that is of a run."""

    def _list(
        self, regions: interface.Regions, kinds: tuple[str, ...], marks_by_run: interface.MarksByRun
    ) -> interface.Listing:
        """Return everything with our marks or names; account-wide lists, kind by kind.

        What names its run says whose machines are that have only their name.
        """
        _ = regions
        draft = interface.ListingDraft(provider=self.name, runs=dict(marks_by_run))
        items: list[tuple[str, JsonDocument]] = []
        unmarked: list[interface.Resource] = []
        for kind in kinds:
            with draft.asking(kind):
                items += [(kind, item) for item in self._items(kind)]
        for kind, item in items:
            marks = self._marks_of(kind, item, draft.runs)
            if marks is not None:
                draft.runs[marks.run] = latest((marks, draft.runs.get(marks.run, marks)))
        for kind, item in items:
            marks = self._marks_of(kind, item, draft.runs)
            owned = None if marks is None else self._resource(kind, item, marks)
            if owned is not None and owned.state != "gone":
                draft.add(owned)
            elif owned is None and self._is_named(kind, item):
                draft.leave(f"{kind} {item.get('name')} ({item.get('id')})", f"at {self.page}")
            elif owned is None and kind == interface.MACHINE and marks_by_run:
                unmarked.append(self._resource(kind, item, next(iter(marks_by_run.values()))))
        return replace(draft.listing(kinds), unmarked=tuple(unmarked))

    def look(
        self, entry: interface.JournaledResource, marks: OwnershipTags
    ) -> interface.ExistenceCheck:
        """Return what the API answers about that id; the journal knows it, so tags may be gone."""
        item = self._item(entry.kind, entry.id)
        if item is None:
            return interface.ExistenceCheck.not_shown(f"{self.title}: no such id")
        shown = self._resource(entry.kind, item, marks)
        if shown.state == "gone":
            return interface.ExistenceCheck.ended(f"{self.title} calls it {item.get('status')}")
        return interface.ExistenceCheck.identified(shown, self._marks_of(entry.kind, item, {}))

    def _placed(
        self, spec: interface.LaunchSpec, regions: Mapping[str, Iterable[str]], why: str
    ) -> interface.LaunchSpec:
        """Return the launch in the regions that have its type.

        Raises:
            NoCapacityError: none has it.
        """
        places = interface.in_regions(spec, regions)
        if not places:
            texts = " or ".join(dict.fromkeys(target.text for target in spec.places))
            raise interface.NoCapacityError(
                f"{self.title} has no {texts} for this account now {why}."
            )
        return replace(spec, places=places)

    def _part(self, answer: object, key: str, subject: str) -> JsonDocument:
        """Return what an answer holds under a key.

        Raises:
            ProviderError: it holds no such part.
        """
        part = answer.get(key) if isinstance(answer, Mapping) else None
        if not isinstance(part, dict):
            raise ProviderError(f"{self.title}: the answer about {subject} cannot be read.")
        return part
