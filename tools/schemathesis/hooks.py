"""What Schemathesis cannot know by itself: where requests come from, and what there is to trade."""

import itertools
import os

import requests
import schemathesis

_send = requests.Session.send
_numbers = itertools.count(1)


def _from_another_address(self, request, **settings):
    """Every request comes from an address of its own, as behind a proxy that the service believes: one address asks no
    more often than its limiter allows, and the wrong keys that are tried shut none out."""
    number = next(_numbers) % (1 << 24)
    request.headers["X-Forwarded-For"] = f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return _send(self, request, **settings)


requests.Session.send = _from_another_address


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """The examples of trades are of a market that is there and open; each is a trade of its own; one is held."""
    # The set of versions is open, but only those that are listed are accepted.
    version = raw_schema["components"]["parameters"]["ApiVersion"]["schema"]
    version["enum"] = version["x-extensible-enum"]
    operation = raw_schema["paths"]["/v1/trades"]["post"]
    examples = operation["requestBody"]["content"]["application/json"]["examples"]
    for example in examples.values():
        example["value"]["marketId"] = os.environ["FORETELL_SCHEMATHESIS_MARKET"]
    examples["held"] = {"value": {**examples["buy"]["value"], "amount": "20", "clientRequestId": "held"}}
    examples["bare"] = {"value": {name: examples["buy"]["value"][name] for name in ["marketId", "outcomeIndex", "amount", "side"]}}
    for parameter in operation["parameters"]:
        if parameter.get("name") == "Idempotency-Key":
            parameter.pop("example", None)
    operation = raw_schema["paths"]["/v1/trades/batch"]["post"]
    for example in operation["requestBody"]["content"]["application/json"]["examples"].values():
        for trade in example["value"]["trades"]:
            trade["marketId"] = os.environ["FORETELL_SCHEMATHESIS_MARKET"]
