"""Lambda's On-Demand Cloud: launches, their end, live prices, over its HTTP API."""

from providers.provider import Provider, SelfEnd, Variable

TOKEN = "LAMBDA_API_KEY"  # noqa: S105 - the name of the variable
REAPER_KEY = "GPUCOST_LAMBDA_REAPER_KEY"
ENDPOINT = "GPUCOST_LAMBDA_ENDPOINT"

PROVIDER = Provider(
    name="lambda",
    address="https://cloud.lambda.ai",
    endpoint=ENDPOINT,
    title="Lambda",
    cloud="providers.lambda_cloud.cloud",
    prices="providers.lambda_cloud.prices",
    scan="providers.lambda_cloud.scan",
    user="ubuntu",  # of the images named Lambda Stack and GPU Base
    end=SelfEnd(
        kind="api",  # an instance that is switched off is still billed
        token=REAPER_KEY,
        reach="everything in the account, for keys have no scopes: use an account of its own",
        url="https://cloud.lambda.ai/api/v1/instances/",
        post="/api/v1/instance-operations/terminate",
        endpoint=ENDPOINT,
    ),
    page="https://cloud.lambda.ai",
    variables=(
        Variable(
            name=TOKEN, use="Lambda: needed to refresh prices and launch, not to plan", secret=True
        ),
        Variable(
            name=REAPER_KEY,
            use="Lambda: with it a machine ends itself at its deadline",
            secret=True,
        ),
    ),
    asked_with=(TOKEN,),
    not_in_total="file systems that are attached by hand are not in the total",
)
