"""Lambda's On-Demand Cloud: launches, their end, live prices, over its HTTP API."""

from providers.provider import Permissions, Provider, SelfEnd, Variable

TOKEN = "LAMBDA_API_KEY"  # noqa: S105 - the name of the variable

_ALL = (("an API key", "keys have no scopes: each may do everything in its account"),)

PROVIDER = Provider(
    name="lambda",
    address="https://cloud.lambda.ai",
    endpoint="GPUCOST_LAMBDA_ENDPOINT",
    title="Lambda",
    cloud="providers.lambda_cloud.cloud",
    prices="providers.lambda_cloud.prices",
    user="ubuntu",  # of the images named Lambda Stack and GPU Base
    end=SelfEnd(
        kind="none",
        lacks=(
            "an instance that is switched off is still billed, and only a key that may do "
            "everything in the account could end it, which is not left on a machine"
        ),
    ),
    page="https://cloud.lambda.ai",
    variables=(
        Variable(
            name=TOKEN, use="Lambda: needed to refresh prices and launch, not to plan", secret=True
        ),
    ),
    asked_with=(TOKEN,),
    permissions=(Permissions(name="lambda", reading=_ALL, launching=_ALL),),
    not_in_total="file systems that are attached by hand are not in the total",
)
