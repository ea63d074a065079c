"""AWS, as the rest of gpucost needs to know it."""

from providers.aws.permissions import end_role, policy
from providers.aws.schedule import LATE_S
from providers.provider import Permissions, Provider, SelfEnd, SpotNotices, Variable

_METADATA = "http://169.254.169.254/latest"

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
    # EC2 User Guide, "Spot Instance interruption notices" and "rebalance recommendations": two
    # minutes before, and as soon as the risk is elevated; IMDSv2 alone is on (HttpTokens).
    notices=SpotNotices(
        token_url=f"{_METADATA}/api/token",
        token_life="X-aws-ec2-metadata-token-ttl-seconds: 60",  # noqa: S106 - a header
        token_header="X-aws-ec2-metadata-token: ",  # noqa: S106 - a header
        taken_url=f"{_METADATA}/meta-data/spot/instance-action",
        at_risk_url=f"{_METADATA}/meta-data/events/recommendations/rebalance",
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
