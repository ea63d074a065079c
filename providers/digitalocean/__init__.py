"""DigitalOcean, through pydo."""

from providers.provider import Permissions, Provider, SelfEnd, Variable

TOKEN = "DIGITALOCEAN_TOKEN"  # noqa: S105 - the name of the variable
ENDPOINT = "GPUCOST_DIGITALOCEAN_ENDPOINT"
REAPER_TOKEN = "GPUCOST_DIGITALOCEAN_REAPER_TOKEN"  # noqa: S105 - the name of the variable

_READ_DROPLETS = ("droplet:read", "regions:read", "sizes:read", "actions:read", "image:read")

SCOPES: tuple[tuple[str, str], ...] = (
    ("account:read", "limit of Droplets, before a launch; whether a run is in this account"),
    ("sizes:read", "prices and regions"),
    ("regions:read", "required by droplet:read"),
    ("actions:read", "required by droplet:read"),
    ("image:read", "required by droplet:read; the image of the size"),
    ("droplet:create", "machines"),
    ("droplet:read", "their state"),
    ("droplet:update", "their tags, for `gpucost extend`"),
    ("droplet:delete", "their end"),
    ("ssh_key:create", "the key of a run"),
    ("ssh_key:read", "finding it again, and --ssh-key"),
    ("ssh_key:delete", "its end"),
    ("firewall:create", "only SSH comes in"),
    ("firewall:read", "finding it again"),
    ("firewall:delete", "its end"),
    ("tag:create", "owner, plan, run and deadline"),
    ("tag:read", "finding what is ours"),
    ("tag:delete", "the end of a run's own tag"),
)
"""Custom scopes of the token in DIGITALOCEAN_TOKEN, and what each is for.

Names and requirements: docs.digitalocean.com/reference/api/scopes, edited 2025-08-28.
"""

REAPER_SCOPES: tuple[tuple[str, str], ...] = (
    *((scope, "required by droplet:delete") for scope in _READ_DROPLETS),
    ("droplet:delete", "a machine's own end; reaches every Droplet of the account"),
)
"""Custom scopes of the token in GPUCOST_DIGITALOCEAN_REAPER_TOKEN."""


def _reading(scopes: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(row for row in scopes if row[0].endswith(":read"))


PROVIDER = Provider(
    name="digitalocean",
    address="https://api.digitalocean.com",
    endpoint=ENDPOINT,
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
