"""DigitalOcean, as the rest of gpucost needs to know it."""

from providers.digitalocean.access import ENDPOINT, TOKEN
from providers.digitalocean.permissions import REAPER_SCOPES, SCOPES
from providers.provider import Permissions, Provider, SelfEnd, Variable

REAPER_TOKEN = "GPUCOST_DIGITALOCEAN_REAPER_TOKEN"  # noqa: S105 - the name of the variable


def _reading(scopes: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(row for row in scopes if row[0].endswith(":read"))


PROVIDER = Provider(
    name="digitalocean",
    title="DigitalOcean",
    cloud="providers.digitalocean.cloud",
    prices="providers.digitalocean.prices",
    user="root",
    end=SelfEnd(
        kind="api",  # a Droplet that is powered off is still billed
        token=REAPER_TOKEN,
        reach="all Droplets of the account",
        id_url="http://169.254.169.254/metadata/v1/id",
        url="https://api.digitalocean.com/v2/droplets/",
        endpoint=ENDPOINT,
    ),
    page="https://cloud.digitalocean.com/gpus",
    variables=(
        Variable(
            name=TOKEN,
            use="DigitalOcean: needed to refresh prices and launch, not to plan",
            secret=True,
        ),
        Variable(
            name=REAPER_TOKEN,
            use="DigitalOcean: with it a machine ends itself at its deadline",
            secret=True,
        ),
    ),
    asked_with=(TOKEN,),
    permissions=(
        Permissions(name="digitalocean", reading=_reading(SCOPES), launching=SCOPES),
        Permissions(
            name="digitalocean-reaper", reading=_reading(REAPER_SCOPES), launching=REAPER_SCOPES
        ),
    ),
)
