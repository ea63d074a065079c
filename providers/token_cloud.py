"""What providers with one token and account-wide lists have in common: how ours is found there."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from pricing.errors import ProviderError
from providers.interface import (
    Cloud,
    ExistenceCheck,
    JournaledResource,
    LaunchSpec,
    Listing,
    ListingDraft,
    NoCapacityError,
    Resource,
    in_regions,
)
from providers.ownership_tags import OwnershipTags, latest
from providers.token_api import JsonDocument, TokenAccess


@dataclass(kw_only=True)
class TokenCloud(Cloud):
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
        kind: str, item: JsonDocument, marks_by_run: Mapping[str, OwnershipTags]
    ) -> OwnershipTags | None:
        """Return whose an item is, by what it carries, else by its name; None: not ours."""

    @staticmethod
    @abstractmethod
    def _is_named(kind: str, item: JsonDocument) -> bool:
        """Return whether an item is named as ours are."""

    @staticmethod
    @abstractmethod
    def _resource(kind: str, item: JsonDocument, marks: OwnershipTags) -> Resource:
        """Return an item that is of a run."""

    def _list(
        self,
        regions: tuple[str, ...] | None,
        kinds: tuple[str, ...],
        marks_by_run: Mapping[str, OwnershipTags],
    ) -> Listing:
        """Return everything with our marks or names; account-wide lists, kind by kind.

        What names its run says whose machines are that have only their name.
        """
        _ = regions
        draft = ListingDraft(provider=self.name, runs=dict(marks_by_run))
        items: list[tuple[str, JsonDocument]] = []
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
        return draft.listing(kinds)

    def look(self, entry: JournaledResource, marks: OwnershipTags) -> ExistenceCheck:
        """Return what the API answers about that id; the journal knows it, so tags may be gone."""
        item = self._item(entry.kind, entry.id)
        if item is None:
            return ExistenceCheck.not_shown(f"{self.title}: no such id")
        shown = self._resource(entry.kind, item, marks)
        if shown.state == "gone":
            return ExistenceCheck.gone(f"{self.title} calls it {item.get('status')}")
        return ExistenceCheck.identified(shown, self._marks_of(entry.kind, item, {}))

    def _placed(
        self, spec: LaunchSpec, regions: Mapping[str, Iterable[str]], why: str
    ) -> LaunchSpec:
        """Return the launch in the regions that have its type.

        Raises:
            NoCapacityError: none has it.
        """
        places = in_regions(spec, regions)
        if not places:
            texts = " or ".join(dict.fromkeys(place.text for place in spec.places))
            raise NoCapacityError(f"{self.title} has no {texts} for this account now {why}.")
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
