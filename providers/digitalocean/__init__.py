"""DigitalOcean, through pydo."""

from providers.provider import Provider, SelfEnd, Variable

TOKEN = "DIGITALOCEAN_TOKEN"  # noqa: S105 - the name of the variable
ENDPOINT = "GPUCOST_DIGITALOCEAN_ENDPOINT"
REAPER_TOKEN = "GPUCOST_DIGITALOCEAN_REAPER_TOKEN"  # noqa: S105 - the name of the variable

PROVIDER = Provider(
    name="digitalocean",
    address="https://api.digitalocean.com",
    endpoint=ENDPOINT,
    title="DigitalOcean",
    cloud="providers.digitalocean.cloud",
    prices="providers.digitalocean.prices",
    scan="providers.digitalocean.scan",
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
)
