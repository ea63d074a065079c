"""The least that launches at DigitalOcean need: custom scopes of its tokens."""

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
