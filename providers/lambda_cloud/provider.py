"""Lambda, as the rest of gpucost needs to know it."""

from providers.lambda_cloud.access import TOKEN
from providers.provider import Permissions, Provider, SelfEnd, Variable

_ALL = (("an API key", "keys have no scopes: each may do everything in its account"),)

PROVIDER = Provider(
    name="lambda",
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
