"""AWS, as the rest of gpucost needs to know it."""

from providers.aws.permissions import policy
from providers.provider import Permissions, Provider, SelfEnd, Variable

PROVIDER = Provider(
    name="aws",
    title="AWS",
    cloud="providers.aws.cloud",
    prices="providers.aws.prices",
    user="ubuntu",  # of the Deep Learning AMIs on Ubuntu
    end=SelfEnd(kind="poweroff"),  # launched with shutdown behaviour "terminate"
    page="https://console.aws.amazon.com/ec2",
    variables=(
        Variable(
            name="AWS_ACCESS_KEY_ID",
            use="AWS: the SDK's own chain; needed to refresh prices and launch",
        ),
    ),
    asked_with=("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    permissions=(
        Permissions(name="aws", reading=policy(launches=False), launching=policy(launches=True)),
    ),
    not_in_total="the root volume, whose size the image sets, and traffic are not in the total",
)
