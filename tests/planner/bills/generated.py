"""Bills of known truth: worlds, written down in every form in which bills come."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tests.planner.bills.world import REGIONS, World


def _stamp(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"


def _table(rows: list[dict[str, str]]) -> str:
    text = io.StringIO()
    columns = list(dict.fromkeys(column for row in rows for column in row))
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


_AWS_TYPES = {
    "disk": "EBS:VolumeUsage.gp3",
    "address": "PublicIPv4:InUseAddress",
    "idle-address": "PublicIPv4:IdleAddress",
    "database": "RDS:GP3-Storage",
    "gateway": "NatGateway-Hours",
}
_AWS_WORDS = {
    "disk": "$0.08 per GB-month of General Purpose (gp3) provisioned storage - US East",
    "address": "$0.005 per In-use public IPv4 address per hour",
    "idle-address": "$0.005 per Idle public IPv4 address per hour",
    "database": "$0.115 per GB-month of provisioned gp3 storage running PostgreSQL",
    "gateway": "$0.045 per NAT Gateway Hour",
    "unused": "Unused reservation",
    "tax": "VAT",
    "credit": "Promotional credit",
}


def _focus(world: World, version: str) -> str:
    categories = {"tax": "Tax", "credit": "Credit"}
    services = {"disk": "Storage", "database": "Databases", "gateway": "Networking"}
    table = []
    for row in world.rows:
        machine = row.kind == "compute"
        unused = row.kind == "unused"
        table.append({
            "BilledCost": "0" if unused else f"{row.usd}",
            "EffectiveCost": f"{row.usd}",
            "BillingCurrency": "USD",
            "ChargeCategory": categories.get(row.kind, "Usage"),
            "ChargeDescription": f"$1 per {'Spot' if row.spot else 'On Demand'} Linux {row.size} "
            "Instance Hour" if machine else _AWS_WORDS[row.kind],
            "ChargePeriodStart": _stamp(row.start), "ChargePeriodEnd": _stamp(row.end),
            "CommitmentDiscountId": "ri-1" if unused else "",
            "CommitmentDiscountStatus": "Unused" if unused else "",
            "ConsumedQuantity": f"{row.hours}", "ConsumedUnit": "Hours" if row.hours else "",
            "PricingCategory": "Dynamic" if row.spot else "Standard",
            "ServiceCategory": "Compute" if machine else services.get(row.kind, "Networking"),
            "ServiceName": "Amazon Elastic Compute Cloud",
            "ServiceProviderName" if version == "1.4" else "ProviderName": "AWS",
            "RegionId": row.region, "ResourceId": row.resource, "SubAccountId": row.account,
        })  # fmt: skip
    return _table(table)


def _cur(world: World, _: str) -> str:
    types = {"tax": "Tax", "credit": "Credit", "unused": "RIFee"}
    table = []
    for row in world.rows:
        machine = f"{'SpotUsage' if row.spot else 'BoxUsage'}:{row.size}"
        table.append({
            "lineItem/LineItemType": types.get(row.kind, "Usage"),
            "lineItem/UsageAccountId": row.account,
            "lineItem/ResourceId": row.resource,
            "lineItem/UsageStartDate": _stamp(row.start), "lineItem/UsageEndDate": _stamp(row.end),
            "lineItem/UsageType": machine if row.kind == "compute"
            else _AWS_TYPES.get(row.kind, "HeavyUsage:p5.48xlarge"),
            "lineItem/UsageAmount": f"{row.hours}", "lineItem/CurrencyCode": "USD",
            "lineItem/UnblendedCost": f"{row.usd}",
            "lineItem/LineItemDescription": _AWS_WORDS.get(row.kind, f"{row.size} Instance Hour"),
            "product/regionCode": row.region,
            "reservation/UnusedRecurringFee": f"{row.usd}" if row.kind == "unused" else "",
        })  # fmt: skip
    return _table(table)


_PRODUCTS = {
    "disk": ("Volumes", "unused-{} - 500 GB"),
    "idle-address": ("Floating IPs", "Unused Floating IP - 1.1.1.1 {}"),
    "database": ("Managed Databases", "postgres {}"),
    "gateway": ("Load Balancers", "lb {}"),
    "address": ("Load Balancers", "lb {}"),
    "unused": ("Spaces Subscription", "Spaces {}"),
    "tax": ("Taxes", "SALES TAX {}"),
    "credit": ("Credits", "Referral credit {}"),
}


def _digitalocean(world: World, _: str) -> str:
    table = []
    for row in world.rows:
        product, words = _PRODUCTS.get(row.kind, ("Droplets", "unused {} (" + row.size + ")"))
        table.append({
            "product": product, "group_description": "",
            "description": words.format(f"{row.account}-{row.resource}"),
            "hours": f"{row.hours}",
            "start": f"{row.start:%Y-%m-%d %H:%M:%S} +0000",
            "end": f"{row.end:%Y-%m-%d %H:%M:%S} +0000",
            "USD": f"${row.usd:,}".replace("$-", "-$"), "project_name": "", "category": "iaas",
        })  # fmt: skip
    return _table(table)


def _insights(world: World, _: str) -> str:
    points = []
    for row in world.rows:
        product, words = _PRODUCTS.get(row.kind, ("Droplets", "unused {} (" + row.size + ")"))
        sku = "1-DO-DROP-0109" if row.kind == "compute" else "1-DO-OTHER"
        points.append({
            "start_date": f"{row.start:%Y-%m-%d}", "total_amount": f"{row.usd}",
            "region": row.region, "sku": sku,
            "description": words.format(f"{row.account}-{row.resource}")
            if row.kind == "compute" else f"{product}: {words.format(row.resource)}",
        })  # fmt: skip
    return json.dumps({"data_points": points}, indent=0)


_AZURE = {
    "compute": ("Virtual Machines", "", ""),
    "disk": ("Storage", "Premium SSD Managed Disks", "P20 LRS Disk"),
    "address": ("Virtual Network", "IP Addresses", "Standard IPv4 Static Public IP"),
    "database": ("SQL Database", "SQL Storage", "Data Stored"),
    "gateway": ("NAT Gateway", "", "Standard NAT Gateway"),
    "unused": ("Virtual Machines", "NCads", "NC24ads A100 v4"),
}


def _azure(world: World, _: str) -> str:
    types = {"unused": "UnusedReservation", "tax": "Tax", "credit": "Refund"}
    table = []
    for row in world.rows:
        category, sub, meter = _AZURE.get(row.kind.removeprefix("idle-"), ("", "", ""))
        table.append({
            "date": f"{row.start:%m/%d/%Y}", "meterCategory": category, "meterSubCategory": sub,
            "meterName": meter or row.size, "unitOfMeasure": "1 Hour",
            "quantity": f"{row.hours}", "costInBillingCurrency": f"{row.usd * 2}",
            "billingCurrency": "CAD", "costInUsd": f"{row.usd}",
            "chargeType": types.get(row.kind, "Usage"),
            "pricingModel": "Reservation" if row.kind == "unused" else "OnDemand",
            "ResourceId": row.resource, "SubscriptionId": row.account,
            "resourceLocation": row.region,
            "additionalInfo": json.dumps({"ServiceType": row.size} if row.size else {}),
        })  # fmt: skip
    return _table(table)


_GCP = {
    "core": ("Compute Engine", "A2 Instance Core running in Americas"),
    "ram": ("Compute Engine", "A2 Instance Ram running in Americas"),
    "gpu": ("Compute Engine", "Nvidia Tesla {} GPU running in Americas"),
    "disk": ("Compute Engine", "Storage PD Capacity"),
    "address": ("Compute Engine", "External IP Charge on a Standard VM"),
    "idle-address": ("Compute Engine", "Static Ip Charge"),
    "database": ("Cloud SQL", "Cloud SQL for PostgreSQL: Zonal - Standard storage in Americas"),
    "gateway": ("Networking", "Networking Cloud Nat Gateway Uptime"),
    "tax": ("Invoice", "Tax"),
    "credit": ("Invoice", "Adjustment"),
}


def _gcp(world: World, _: str) -> str:
    lines = []
    for row in world.rows:
        service, sku = _GCP[row.part or row.kind]
        label = "compute.googleapis.com/"
        labels = {"machine_spec": row.size, "cores": "12"} if row.part else {}
        if row.kind == "unused":
            labels["is_unused_reservation"] = "true"
        each = 12 if row.part == "core" else 1
        lines.append(json.dumps({
            "billing_account_id": "0", "service": {"description": service},
            "sku": {"description": sku.format("T4" if row.size == "n1-standard-4" else "A100")},
            "usage_start_time": f"{row.start:%Y-%m-%d %H:%M:%S} UTC",
            "usage_end_time": f"{row.end:%Y-%m-%d %H:%M:%S} UTC",
            "project": {"id": row.account}, "location": {"region": row.region},
            "system_labels": [{"key": label + key, "value": v} for key, v in labels.items()],
            "cost": f"{row.usd + 1}", "currency": "USD",
            "credits": [{"name": "x", "type": "SUSTAINED_USAGE_DISCOUNT", "amount": "-1"}],
            "usage": {"amount_in_pricing_units": row.hours * each, "pricing_unit": "hour"},
            "resource": {"global_name": row.resource},
            "cost_type": {"tax": "tax", "credit": "adjustment"}.get(row.kind, "regular"),
        }))  # fmt: skip
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of bill that worlds are written in."""

    provider: str
    grain: str
    write: Callable[[World, str], str]
    version: str = ""
    places: tuple[str, ...] = REGIONS


FORMS = {
    "focus 1.0, hourly": Form(provider="aws", grain="hour", write=_focus, version="1.0"),
    "focus 1.4, daily": Form(provider="aws", grain="day", write=_focus, version="1.4"),
    "cur, hourly": Form(provider="aws", grain="hour", write=_cur),
    "cur, daily": Form(provider="aws", grain="day", write=_cur),
    "azure, daily": Form(provider="azure", grain="day", write=_azure),
    "gcp, hourly": Form(provider="gcp", grain="hour", write=_gcp),
    "digitalocean invoice": Form(
        provider="digitalocean", grain="whole", write=_digitalocean, places=("",)
    ),
    "digitalocean insights": Form(
        provider="digitalocean", grain="day", write=_insights, places=("nyc2", "ams3")
    ),
}


def drawn(form: str, seed: int) -> tuple[World, str]:
    """A world and its bill."""
    of = FORMS[form]
    world = World(provider=of.provider, seed=seed, grain=of.grain, places=of.places)
    return world, of.write(world, of.version)
