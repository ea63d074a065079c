"""A provider as small as one can be: CONTRIBUTING.md walks through its three files.

Its account is a folder, with one JSON file a resource; EXAMPLE_CLOUD_FOLDER names it. It is not
shipped: tests register it with one row and use it through every command.
"""

from providers.provider import Provider, SelfEnd, Variable

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
)
