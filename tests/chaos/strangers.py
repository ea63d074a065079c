"""What is in every account beside ours: Eve, who launches there, too."""

from datetime import UTC, datetime, timedelta

from providers.ownership_tags import Marks

Life = tuple[datetime, datetime | None]


def eve() -> Marks:
    """The marks of a live run of another owner."""
    deadline = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    return Marks(run="evesrun1", deadline=deadline, owner="eve", plan="hers")
