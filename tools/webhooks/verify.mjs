// Verifies deliveries with the published packages `stripe` and `standardwebhooks`, as they are: `node verify.mjs FILE OLD NEW`,
// where OLD is the secret before the rotation and NEW the one behind it. Each delivery has to verify by the secrets that
// signed it, and must not with a byte changed, by another secret, or when it is old.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { Webhook } from "standardwebhooks";
import Stripe from "stripe";

const [file, oldSecret, newSecret] = process.argv.slice(2);
const stranger = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const { webhooks } = new Stripe("sk_test_none");
const TOLERANCE_MS = 300_000;

// Everything in milliseconds: the library divides the time of receipt by a thousand.
const byStripe = (body, { headers }, secret, atMs = Date.now()) =>
  webhooks.constructEvent(body, headers["x-service-signature"], secret, TOLERANCE_MS, undefined, atMs * 1000);
const byStandard = (body, { headers }, secret) => new Webhook(secret).verify(body, headers);

const deliveries = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const counted = { old: 0, both: 0, new: 0 };
for (const delivery of deliveries) {
  const body = Buffer.from(delivery.body, "base64");
  const signatures = delivery.headers["x-service-signature"].split(",").length - 1;
  assert.equal(delivery.headers["webhook-signature"].split(" ").length, signatures);
  const signers = [];
  for (const secret of [oldSecret, newSecret]) {
    try {
      byStandard(body, delivery, secret);
      signers.push(secret);
    } catch {}
  }
  assert.equal(signers.length, signatures, "as many secrets verify as signatures were given");
  counted[signers.length === 2 ? "both" : signers[0] === oldSecret ? "old" : "new"] += 1;
  for (const verify of [byStripe, byStandard]) {
    for (const secret of signers) {
      const event = verify(body, delivery, secret);
      assert.equal(event.id, delivery.headers["x-service-event-id"]);
      assert.equal(event.apiVersion, delivery.headers["x-service-api-version"]);
    }
    assert.throws(() => verify(body, delivery, stranger));
    for (let at = 0; at < body.length; at += 1) {
      const changed = Buffer.from(body);
      changed[at] ^= 1;
      assert.throws(() => verify(changed, delivery, signers[0]), `a change of byte ${at} is not noticed`);
    }
  }
  const signedMs = Number(/^t=(\d+),/.exec(delivery.headers["x-service-signature"])[1]);
  byStripe(body, delivery, signers[0], signedMs + TOLERANCE_MS);
  assert.throws(() => byStripe(body, delivery, signers[0], signedMs + TOLERANCE_MS + 1), "an old delivery passes");
}
assert.ok(counted.old > 0 && counted.both > 0 && counted.new > 0, JSON.stringify(counted));
console.log(`${deliveries.length} deliveries verify with stripe and standardwebhooks of npm`, counted);
