"""Reads the Azure Retail Prices API: meters of virtual machines, a page at a time.

Form: learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices (items,
`NextPageLink`, `$filter`), and its readers in gpuhunt (`providers/azure.py` at 3584151) and
SkyPilot (`data_fetchers/fetch_azure.py`). A meter names a size and a price; what the size has
comes from the sizes that are known.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from pricing.errors import InputError
from pricing.feeds.feeds import digits, document
from pricing.refresh.feed_rows import FeedRow, of_known_machine
from pricing.refresh.reading import FeedRequest, Question

_FILTER = (
    "serviceName eq 'Virtual Machines' and priceType eq 'Consumption' "
    "and contains(armSkuName, 'Standard_N')"
)
_MOST_PAGES = 400
_SAY_EVERY = 10
_OTHER_SALES = ("Windows", " Win", "Dedicated", "CloudServices", "Cloud Services")


def rows(request: FeedRequest, left_out: Counter[str]) -> Iterator[FeedRow]:
    """Yield the prices on demand and spot, all regions."""
    for item in _items(request):
        yield from _lines(item, left_out)


def _items(request: FeedRequest) -> Iterator[Mapping[str, object]]:
    """Yield the meters of all pages; of files, of all of them.

    Raises:
        InputError: a page is missing, or they go on for ever.
    """
    files = request.answers.files
    path = f"?currencyCode=USD&$filter={_FILTER}".replace(" ", "%20")
    for page in range(1, _MOST_PAGES + 1):
        name = files[page - 1].name if files else f"page-{page}.json"
        page_document = document(request, Question(name=name, path=path))
        yield from page_document["Items"]
        path = page_document.get("NextPageLink") or ""
        if files and page == len(files):
            if path and len(files) == 1:
                raise InputError(f"{name}: says that another page follows; give the folder of all.")
            return
        if not path and not files:
            return
        if page % _SAY_EVERY == 0:
            request.say(f"Azure Retail Prices: {page} pages ...")
    raise InputError(f"Azure Retail Prices: more than {_MOST_PAGES} pages.")


def _lines(item: Mapping[str, object], left_out: Counter[str]) -> Iterator[FeedRow]:
    why = next(_reasons(item), "")
    line = of_known_machine(
        "azure",
        str(item["armSkuName"]),
        region=str(item["armRegionName"]),
        usd_per_hour=digits(item["retailPrice"]),
        purchase="spot" if "Spot" in str(item["skuName"]) else "on_demand",
    )
    if why or line is None:
        left_out[why or "a size that is not in the list of machines"] += 1
    else:
        yield line


def _reasons(item: Mapping[str, object]) -> Iterator[str]:
    """Yield why a meter is not an offer."""
    if item["currencyCode"] != "USD":
        yield f"a price in {str(item['currencyCode'])[:8]}, not in US dollars"
    if not str(item["armSkuName"]).startswith("Standard_N"):
        yield "a size without a GPU"
    if item["unitOfMeasure"] != "1 Hour" or item["type"] != "Consumption":
        yield "not a price per hour"
    if any(word in str(item["productName"]) for word in _OTHER_SALES):
        yield "with Windows, or on a dedicated host"
    if "Low Priority" in str(item["skuName"]):
        yield "low priority, an older form of spot"
