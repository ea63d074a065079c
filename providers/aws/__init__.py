"""Amazon Web Services, through boto3."""

from providers.provider import Provider, SelfEnd, Variable

LATE_S = 120
"""A schedule names a minute, and comes within sixty seconds of it: so much later at most.

docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html ("60 second precision")
"""

SCHEDULES = "EventBridge Scheduler"
_METADATA = "http://169.254.169.254/latest"

PROVIDER = Provider(
    name="aws",
    address="https://ec2.us-east-1.amazonaws.com",
    endpoint="AWS_ENDPOINT_URL",
    title="AWS",
    cloud="providers.aws.cloud",
    prices="providers.aws.prices",
    scan="providers.aws.scan",
    user="ubuntu",  # of the Deep Learning AMIs on Ubuntu
    end=SelfEnd(
        kind="poweroff",  # launched with shutdown behaviour "terminate"
        outside=SCHEDULES,
        outside_s=LATE_S,
    ),
    # EC2 User Guide, "Spot Instance interruption notices" and "rebalance recommendations": two
    # minutes before, and as soon as the risk is elevated; IMDSv2 alone is on (HttpTokens).
    notices={
        "token_url": f"{_METADATA}/api/token",
        "token_life": "X-aws-ec2-metadata-token-ttl-seconds: 60",
        "token_header": "X-aws-ec2-metadata-token: ",
        "taken_url": f"{_METADATA}/meta-data/spot/instance-action",
        "at_risk_url": f"{_METADATA}/meta-data/events/recommendations/rebalance",
    },
    page="https://console.aws.amazon.com/ec2",
    variables=(
        Variable(
            name="AWS_ACCESS_KEY_ID",
            use="AWS: the SDK's own chain; needed to refresh prices and launch",
        ),
    ),
    asked_with=("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    joins_plainly=True,
    not_in_total="the root volume, whose size the image sets, and traffic are not in the total",
)
