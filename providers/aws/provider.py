"""AWS, as the rest of gpucost needs to know it."""

from providers.aws.permissions import end_role, policy
from providers.aws.schedule import LATE_S
from providers.provider import Permissions, Provider, SelfEnd, Variable

PROVIDER = Provider(
    name="aws",
    title="AWS",
    cloud="providers.aws.cloud",
    prices="providers.aws.prices",
    user="ubuntu",  # of the Deep Learning AMIs on Ubuntu
    end=SelfEnd(
        kind="poweroff",  # launched with shutdown behaviour "terminate"
        outside="EventBridge Scheduler",
        outside_s=LATE_S,
    ),
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
        Permissions(name="aws-end-role", reading=end_role(), launching=end_role()),
    ),
    not_in_total="the root volume, whose size the image sets, and traffic are not in the total",
)
