"""What a launch from a user's own image must know: which volumes would outlive their machine."""

from typing import Any

from providers.aws.failures import DENIED, code_of

_ID = "ami-"


def volumes_that_stay(ec2: Any, image: str, region: str) -> tuple[tuple[str, ...], str, bool]:  # noqa: ANN401 - boto3's
    """Return the devices of an image whose volumes outlive their machine, as EC2 has it.

    Args:
        ec2: client of the region.
        image: id of it; empty: the provider's own, whose volumes go with the machine.
        region: where.

    Returns:
        The devices, what to say of it (empty: nothing), and whether it is there at all.
    """
    if not image:
        return (), "", True
    unseen = f"{image} was not looked at, so a volume of it may stay without its machine"
    if not image.startswith(_ID):
        return (), unseen, True
    try:
        found = ec2.describe_images(ImageIds=[image])["Images"]
    except Exception as error:
        code = code_of(error)
        if code == DENIED:
            return (), f"{unseen} (ec2:DescribeImages is not allowed)", True
        if not code.startswith("InvalidAMIID"):
            raise
        found = []
    if not found:
        return (), f"there is no image {image} in {region}", False
    stay = tuple(
        str(one["DeviceName"])
        for one in found[0].get("BlockDeviceMappings", ())
        if one.get("Ebs", {}).get("DeleteOnTermination") is False
    )
    told = f"{image} keeps {', '.join(stay)} when its machine ends; it is made to go with it"
    return stay, told if stay else "", True
