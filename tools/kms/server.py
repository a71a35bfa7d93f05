"""moto's KMS, which checks signatures of requests: `server.py DIR PORT`.

Writes DIR/kms.json once it answers: its URL, the keys, and the access keys of two users, of whom only the first may
use the keys. It stores nothing, but a server that starts again on DIR has the same keys and users.
"""

import json
import os
import sys

import boto3
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from moto import settings
from moto.kms import utils as kms
from moto.moto_api._internal import mock_random
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"


def sign_digest(self, message, signing_algorithm):
    return self.private_key.sign(message, ec.ECDSA(utils.Prehashed(hashes.SHA256())))


def derive_key(self, key_spec):
    curve = {"ECC_SECG_P256K1": ec.SECP256K1(), "ECC_NIST_P256": ec.SECP256R1()}[key_spec]
    self.private_key = ec.derive_private_key(mock_random.getrandbits(248) + 1, curve)


def access_key(iam, name, actions):
    iam.create_user(UserName=name)
    if actions:
        document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
        iam.put_user_policy(UserName=name, PolicyName="keys", PolicyDocument=json.dumps(document))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {"id": key["AccessKeyId"], "secret": key["SecretAccessKey"]}


def main(folder, port):
    # moto ignores that the message is a digest, and would hash it again.
    kms.ECDSAPrivateKey.sign = sign_digest
    kms.ECDSAPrivateKey.__init__ = derive_key
    mock_random.seed(2026)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port)
    server.start()
    url = f"http://127.0.0.1:{port}"
    account = {
        "endpoint_url": url, "region_name": REGION, "aws_access_key_id": "first", "aws_secret_access_key": "first",
    }
    iam = boto3.client("iam", **account)
    keys = boto3.client("kms", **account)
    written = {
        "url": url,
        "region": REGION,
        "user": access_key(iam, "executor", ["kms:GetPublicKey", "kms:Sign"]),
        "stranger": access_key(iam, "stranger", []),
    }
    for name, spec in {"key": "ECC_SECG_P256K1", "otherCurve": "ECC_NIST_P256"}.items():
        made = keys.create_key(KeySpec=spec, KeyUsage="SIGN_VERIFY")
        written[name] = made["KeyMetadata"]["Arn"]
    # From now on, each request needs a valid signature.
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    path = os.path.join(folder, "kms.json")
    with open(path + ".new", "w") as file:
        json.dump(written, file)
    os.replace(path + ".new", path)
    server._thread.join()


main(sys.argv[1], int(sys.argv[2]))
