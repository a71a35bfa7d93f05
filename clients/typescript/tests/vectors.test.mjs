// The vectors of the table: webhooks, signatures, amounts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Foretell, Usdc, Wad, WebhookVerificationError, requestSignature, signDelivery, verify } from "@foretell/client";
import { FORETELL_API_KEY, assertNoSecret, table, textOf } from "./support.mjs";

for (const { id, valid, secrets, header, body, nowMs, toleranceMs } of table.webhooks) {
  test(`webhook ${id} is ${valid ? "valid" : "invalid"}`, async () => {
    const options = { nowMs, ...(toleranceMs && { toleranceMs }) };
    for (const form of [body, new TextEncoder().encode(body)]) {
      const event = await verify(form, header, secrets, options).catch((error) => error);
      if (valid) {
        assert.deepEqual(event, JSON.parse(body));
      } else {
        assert.ok(event instanceof WebhookVerificationError, String(event));
        assertNoSecret([textOf(event)], secrets.filter(Boolean));
      }
    }
  });
}

test("requests are signed like the vectors", async () => {
  for (const { key, timeMs, method, path, body, v1 } of table.signatures) {
    assert.equal(await requestSignature(key, timeMs, method, path, body), `t=${timeMs},v1=${v1}`);
  }
});

test("deliveries are signed like the vectors, and verify as Node.js passes the header", async () => {
  for (const { secret, body, timeMs, v1 } of table.deliveries) {
    const header = await signDelivery(body, secret, timeMs);
    assert.equal(header, `t=${timeMs},v1=${v1}`);
    assert.deepEqual(await verify(body, [header], secret, { nowMs: timeMs }), JSON.parse(body));
    assert.equal((await verify(body, await signDelivery(body, secret), secret)).id, JSON.parse(body).id);
  }
});

const TYPES = { Usdc, Wad };

test("amounts are exact", () => {
  const { parse, atomic, rejected, rejectedAtomic, sums, rounded } = table.amounts;
  for (const { type, text, atomic, decimal } of parse) {
    const amount = TYPES[type].parse(text);
    assert.deepEqual([amount.atomic.toString(), amount.toString(), JSON.stringify({ amount })], [atomic, decimal, `{"amount":"${decimal}"}`]);
  }
  for (const { type, atomic: digits, decimal } of atomic) assert.equal(TYPES[type].fromAtomic(digits).toString(), decimal);
  for (const { type, text } of rejected) assert.throws(() => TYPES[type].parse(text), RangeError, text);
  for (const digits of rejectedAtomic) assert.throws(() => Usdc.fromAtomic(digits), RangeError, digits);
  for (const { type, a, b, sum, difference, order } of sums) {
    const [one, other] = [TYPES[type].parse(a), TYPES[type].parse(b)];
    assert.deepEqual([one.plus(other).toString(), one.minus(other).toString(), one.compare(other)], [sum, difference, order]);
  }
  for (const { type, text, decimals, result } of rounded) assert.equal(TYPES[type].parse(text).roundDown(decimals).toString(), result);
});

test("floating-point numbers are no amounts", () => {
  for (const decimals of [-1, 1.5]) assert.throws(() => Wad.parse("1").roundDown(decimals), RangeError);
  assert.throws(() => Usdc.parse(0.1), RangeError);
  assert.throws(() => Usdc.fromAtomic(1), RangeError);
});

test("a malformed key and an address without encryption are rejected without naming the key", () => {
  const make = (options) => () => new Foretell({ baseUrl: "https://api.example", apiKey: FORETELL_API_KEY, ...options });
  for (const options of [{ apiKey: `${FORETELL_API_KEY}\n` }, { baseUrl: "http://api.example" }, { baseUrl: "ftp://127.0.0.1" }]) {
    assert.throws(make(options), (error) => {
      assertNoSecret([textOf(error)]);
      return error instanceof TypeError;
    });
  }
});
