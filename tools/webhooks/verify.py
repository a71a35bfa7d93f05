"""Verifies deliveries with the published packages `stripe` and `standardwebhooks`, as they are: `verify.py FILE OLD NEW`."""

import base64
import json
import sys

import standardwebhooks
import stripe

file, *secrets = sys.argv[1:]
STRANGER = "whsec_" + base64.b64encode(bytes([7] * 32)).decode()


def by_stripe(body: bytes, headers: dict[str, str], secret: str) -> None:
    stripe.WebhookSignature.verify_header(body, headers["x-service-signature"], secret)


def by_standard(body: bytes, headers: dict[str, str], secret: str) -> None:
    standardwebhooks.Webhook(secret).verify(body, headers)


# What is no text any more cannot be signed.
REFUSALS = (stripe.SignatureVerificationError, standardwebhooks.WebhookVerificationError, UnicodeDecodeError)


def is_refused(verify, body: bytes, headers: dict[str, str], secret: str) -> bool:
    try:
        verify(body, headers, secret)
    except REFUSALS:
        return True
    return False


with open(file, encoding="utf-8") as lines:
    deliveries = [json.loads(line) for line in lines]
assert deliveries
for delivery in deliveries:
    body, headers = base64.b64decode(delivery["body"]), delivery["headers"]
    for verify in (by_stripe, by_standard):
        signers = [secret for secret in secrets if not is_refused(verify, body, headers, secret)]
        assert len(signers) == headers["x-service-signature"].count("v1="), headers
        assert is_refused(verify, body, headers, STRANGER)
        for at in range(len(body)):
            changed = bytearray(body)
            changed[at] ^= 1
            assert is_refused(verify, bytes(changed), headers, signers[0]), at
print(f"{len(deliveries)} deliveries verify with stripe and standardwebhooks of PyPI")
