"""What the example is, as the rest of gpucost needs to know it."""

from providers.provider import Permissions, Provider, SelfEnd, Variable

FOLDER = "EXAMPLE_CLOUD_FOLDER"

PROVIDER = Provider(
    name="example",
    title="Example Cloud",
    cloud="tests.providers.example_cloud.cloud",
    prices="tests.providers.example_cloud.prices",
    user="admin",
    end=SelfEnd(kind="poweroff"),
    page="https://console.example.com",
    variables=(Variable(name=FOLDER, use="Example Cloud: the folder of the account"),),
    asked_with=(FOLDER,),
    permissions=(
        Permissions(
            name="example",
            reading=(("machines:read", "their state"),),
            launching=(("machines:read", "their state"), ("machines:write", "launches")),
        ),
    ),
)
