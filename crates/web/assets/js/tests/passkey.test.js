import assert from "node:assert/strict";
import { createVerify, generateKeyPairSync, sign } from "node:crypto";
import test from "node:test";

import { fromHex, toBase64url, toHex } from "../bytes.js";
import { assertSession, coordinates, createPasskey, scalars, sessionChallenge, signDigest } from "../passkey.js";

const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const HALF = ORDER / 2n;

const pad = (hex) => (hex.length % 2 ? "0" + hex : hex);

// A DER integer of these content bytes, and a sequence of two of them.
const integer = (hex) => "02" + pad((hex.length / 2).toString(16)) + hex;
const sequence = (...parts) => fromHex("0x30" + pad((parts.join("").length / 2).toString(16)) + parts.join(""));
const positive = (value) => {
  const hex = pad(value.toString(16));
  return integer(parseInt(hex.slice(0, 2), 16) > 127 ? "00" + hex : hex);
};

const challengeOf = (length) => toBase64url(new Uint8Array(length));

// The browser's `navigator.credentials` during `run`.
async function withCredentials(credentials, run) {
  Object.defineProperty(globalThis, "navigator", { value: { credentials }, configurable: true });
  return run();
}

test("a session's challenge has 40 bytes, never the 32 of a batch's digest", async () => {
  assert.equal(sessionChallenge(challengeOf(40)).length, 40);
  const unused = { get: () => assert.fail("asked"), create: () => assert.fail("asked") };
  for (const length of [0, 8, 31, 32, 33, 39, 41]) {
    const challenge = challengeOf(length);
    await withCredentials(unused, async () => {
      await assert.rejects(assertSession({ challenge, rpId: "x" }), /40 bytes/);
      await assert.rejects(createPasskey({ challenge, rpId: "x", userHandle: "" }), /40 bytes/);
    });
  }
});

test("only the 32 bytes of a digest are signed for an act", async () => {
  const unused = { get: () => assert.fail("asked") };
  for (const length of [31, 33, 40]) {
    await withCredentials(unused, () => assert.rejects(signDigest(new Uint8Array(length), "x", []), /32 bytes/));
  }
});

test("r and s are read from DER, and s is moved to the lower half", () => {
  const cases = [[1n, 1n], [127n, 128n], [255n, HALF], [ORDER - 1n, HALF + 1n], [ORDER - 1n, ORDER - 1n]];
  for (const [r, s] of cases) {
    const read = scalars(sequence(positive(r), positive(s)));
    assert.equal(BigInt(read.r), r);
    assert.equal(BigInt(read.s), s > HALF ? ORDER - s : s);
    assert.ok(read.r.length === 66 && read.s.length === 66);
  }
});

test("DER that is not canonical, or not of a scalar, is rejected", () => {
  const one = positive(1n);
  const bad = {
    empty: new Uint8Array(),
    "a trailing byte": fromHex(toHex(sequence(one, one)) + "00"),
    "a wrong length": fromHex("0x3007020101020101"),
    "a cut integer": fromHex("0x3006020101020201"),
    "no integer": sequence(one, "0401" + "01"),
    "an empty integer": sequence(one, "0200"),
    "a negative integer": sequence(one, integer("81")),
    "a padded integer": sequence(one, integer("0001")),
    "zero": sequence(one, integer("00")),
    "the order": sequence(one, positive(ORDER)),
    "a third integer": sequence(one, one, one),
  };
  for (const [name, der] of Object.entries(bad)) assert.throws(() => scalars(der), name);
});

test("x and y are taken only from an uncompressed P-256 key", () => {
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const spki = publicKey.export({ type: "spki", format: "der" });
  assert.equal(coordinates(spki), toHex(spki.subarray(27)));
  const other = (type, options) => generateKeyPairSync(type, options).publicKey.export({ type: "spki", format: "der" });
  for (const key of [other("ed25519"), other("ec", { namedCurve: "secp256k1" }), other("ec", { namedCurve: "P-384" }), spki.subarray(1), [...spki, 0]]) {
    assert.throws(() => coordinates(key), /P-256/);
  }
});

test("a digest's signature verifies with r and the lower s", async () => {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const digest = new Uint8Array(32).fill(7);
  const get = async ({ publicKey: options }) => {
    assert.deepEqual([...options.challenge], [...digest]);
    assert.equal(options.userVerification, "required");
    const data = Buffer.from("signed");
    return { id: "id", response: { clientDataJSON: data, authenticatorData: data, signature: sign("sha256", data, privateKey) } };
  };
  for (let i = 0; i < 16; i++) {
    const { r, s, credentialId } = await withCredentials({ get }, () => signDigest(digest, "x", ["aWQ"]));
    const verify = createVerify("sha256").update("signed");
    const key = { key: publicKey, dsaEncoding: "ieee-p1363" };
    assert.ok(verify.verify(key, Buffer.concat([fromHex(r), fromHex(s)])) && BigInt(s) <= HALF);
    assert.equal(credentialId, "id");
  }
});

test("a passkey is created only for ES256, resident and verified", async () => {
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const data = new Uint8Array(37);
  data[32] = 0x4d;
  const create = async ({ publicKey: options }) => {
    assert.deepEqual(options.pubKeyCredParams, [{ type: "public-key", alg: -7 }]);
    assert.deepEqual(options.authenticatorSelection, { residentKey: "required", userVerification: "required" });
    assert.equal(options.attestation, "none");
    const response = {
      clientDataJSON: data, getAuthenticatorData: () => data.buffer, getTransports: () => ["internal"],
      getPublicKey: () => publicKey.export({ type: "spki", format: "der" }),
    };
    return { id: "id", response };
  };
  const record = { challenge: challengeOf(40), rpId: "x", userHandle: challengeOf(16) };
  const passkey = await withCredentials({ create }, () => createPasskey(record, "Ada"));
  assert.equal(passkey.backupEligible, true);
  assert.match(passkey.publicKey, /^0x[0-9a-f]{128}$/);
});
