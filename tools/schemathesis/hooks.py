"""Every request comes from an address of its own, as behind a proxy that the service believes: one address asks no more
often than its limiter allows, and the wrong keys that are tried shut none out."""

import itertools

import requests

_send = requests.Session.send
_numbers = itertools.count(1)


def _from_another_address(self, request, **settings):
    number = next(_numbers) % (1 << 24)
    request.headers["X-Forwarded-For"] = f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return _send(self, request, **settings)


requests.Session.send = _from_another_address
