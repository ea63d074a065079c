"""What is in every account beside ours: Eve, who launches there, too."""

from datetime import UTC, datetime, timedelta

from providers.ownership_tags import OwnershipTags

Life = tuple[datetime, datetime | None]


def eve() -> OwnershipTags:
    """The marks of a live run of another owner."""
    deadline = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    return OwnershipTags(run="evesrun1", deadline=deadline, owner="eve", plan="hers")
