"""moto's KMS, which checks signatures of requests: `server.py DIR PORT`.

Writes DIR/kms.json once it answers: its URL, the keys, and the access keys of two users, of whom only the first may
use the keys. It stores nothing, but a server that starts again on DIR has the same keys and users.
"""

import json
import os
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from moto import settings
from moto.backends import get_backend
from moto.kms import utils as kms
from moto.moto_api._internal import mock_random
from moto.server import ThreadedMotoServer

ACCOUNT, REGION = "123456789012", "eu-central-1"


def sign_digest(self, message, signing_algorithm):
    return self.private_key.sign(message, ec.ECDSA(utils.Prehashed(hashes.SHA256())))


def derive_key(self, key_spec):
    curve = {"ECC_SECG_P256K1": ec.SECP256K1(), "ECC_NIST_P256": ec.SECP256R1()}[key_spec]
    self.private_key = ec.derive_private_key(mock_random.getrandbits(248) + 1, curve)


def make_user(name, actions):
    iam = get_backend("iam")[ACCOUNT]["aws"]
    iam.create_user(REGION, name)
    if actions:
        document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
        iam.put_user_policy(name, "keys", json.dumps(document))
    key = iam.create_access_key(name)
    return {"id": key.access_key_id, "secret": key.secret_access_key}


def make_key(key_spec):
    return get_backend("kms")[ACCOUNT][REGION].create_key(None, "SIGN_VERIFY", key_spec, "", None).arn


def main(folder, port):
    # moto ignores that the message is a digest, and would hash it again.
    kms.ECDSAPrivateKey.sign = sign_digest
    kms.ECDSAPrivateKey.__init__ = derive_key
    # Each request needs a valid signature.
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    # Everything is made before the first request, which also takes random numbers.
    mock_random.seed(2026)
    made = {
        "url": f"http://127.0.0.1:{port}",
        "region": REGION,
        "user": make_user("executor", ["kms:GetPublicKey", "kms:Sign"]),
        "stranger": make_user("stranger", []),
        "key": make_key("ECC_SECG_P256K1"),
        "otherCurve": make_key("ECC_NIST_P256"),
    }
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port)
    server.start()
    path = os.path.join(folder, "kms.json")
    with open(path + ".new", "w") as file:
        json.dump(made, file)
    os.replace(path + ".new", path)
    server._thread.join()


main(sys.argv[1], int(sys.argv[2]))
