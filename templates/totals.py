"""The one recommended total of several jobs, in words."""

from templates.wording import Document, change, dollars, period_words


def total(plan: Document) -> str:
    """Return the one recommended total of several jobs, and how it comes about."""
    found = plan["recommended"]
    least = "at least " if found["at_least"] else ""
    said = f"Recommended: {least}{dollars(found['cost']['mid'])} {period_words(plan)}"
    if found["saves"]["fraction"]:
        said += f" in place of {dollars(found['cost_before'])}, "
        said += change(100.0 * found["saves"]["fraction"])
    else:
        said += ", as today"
    if found["packed"]:
        said += f"; {', '.join(found['packed'])} share"
    if found["unknown"]:
        said += f"; without {', '.join(found['unknown'])}, whose cost is not known"
    return f"{said}."
