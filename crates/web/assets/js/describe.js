// Says in words what the calls of a batch do, from the same bytes that are signed. A passkey cannot
// display what it signs, so a call that is not understood in full must not be signed.

import { checksum, decode, selector } from "./abi.js";
import { fromHex, toHex } from "./bytes.js";
import { tokens, usdc } from "./format.js";

const UNLIMITED = 2n ** 256n - 1n;

export class UnknownCall extends Error {}

const CALLS = {
  usdc: { "approve(address,uint256)": approve, "transfer(address,uint256)": transferUsdc },
  gate: {
    "setPolicy(uint32,(uint64,uint64,uint64,uint64,uint32))": setPolicy,
    "revokePolicy(address,uint32)": revokePolicy,
  },
  hub: {
    "transfer(address,uint256,uint256)": transferPosition,
    "buy(uint64,uint8,uint256,uint256)": buy,
    "sell(uint64,uint8,uint256,uint256)": sell,
  },
  account: { "addOwner(bytes)": addOwner, "removeOwner(bytes)": removeOwner },
};

// Returns one sentence for each call. `known` has the addresses usdc, gate, hub and account.
// Throws UnknownCall if any call is not one of the calls above, in its canonical encoding.
export function describeCalls(calls, known) {
  return calls.map((call, at) => {
    try {
      return describeCall(call, known);
    } catch (error) {
      throw new UnknownCall(`Call ${at + 1} is not understood: ${error.message}`);
    }
  });
}

function describeCall({ target, value, data }, known) {
  const isTarget = (name) => checksum(known[name]) === checksum(target);
  const contract = Object.keys(CALLS).find(isTarget);
  const bytes = fromHex(data);
  const signature = Object.keys(CALLS[contract] ?? {}).find(
    (candidate) => selector(candidate) === toHex(bytes.subarray(0, 4)),
  );
  if (!signature) throw new TypeError(contract ? "unknown function" : "unknown contract");
  if (BigInt(value) !== 0n) throw new TypeError("it sends native currency");
  return CALLS[contract][signature](decode(signature, bytes.subarray(4)), known);
}

function approve([spender, amount], known) {
  if (spender === checksum(known.hub) && amount !== UNLIMITED) {
    return `Allow the market hub to take ${usdc(amount)} for a purchase of yours.`;
  }
  if (spender !== checksum(known.gate)) throw new TypeError("the spender is not the Gate");
  if (amount === 0n) return "End the permission of the Gate to move your USDC. Trading stops.";
  const most = amount === UNLIMITED ? "USDC" : `at most ${usdc(amount)}`;
  return `Allow the Gate to move ${most} into your own trades, within the limits of your keys.`;
}

function transferUsdc([to, amount]) {
  return `Send ${usdc(amount)} to ${to}.`;
}

function transferPosition([to, id, amount]) {
  if (id >> 72n) throw new TypeError("not a position");
  return `Send ${tokens(amount)} of outcome ${id & 255n} of market ${id >> 8n} to ${to}.`;
}

function buy([market, outcome, amount, least]) {
  return `Buy at least ${tokens(least)} of outcome ${outcome} of market ${market} for ${usdc(amount)}.`;
}

function sell([market, outcome, amount, least]) {
  return `Sell ${tokens(amount)} of outcome ${outcome} of market ${market} for at least ${usdc(least)}.`;
}

function setPolicy([key, perTrade, daily, salePerTrade, saleDaily, expiry]) {
  const sales = salePerTrade && saleDaily
    ? `sell tokens that pay at most ${usdc(salePerTrade)} per trade and ${usdc(saleDaily)} per day`
    : "sell nothing";
  return `Until ${date(expiry)}, key ${key} may buy for at most ${usdc(perTrade)} per trade and ` +
    `${usdc(daily)} per day, and ${sales}.`;
}

function revokePolicy([account, key], known) {
  if (account !== checksum(known.account)) throw new TypeError("another account");
  return `Key ${key} may no longer trade.`;
}

function addOwner([owner]) {
  return `Add ${nameOwner(owner)} as an owner. It can do everything with the account.`;
}

function removeOwner([owner]) {
  return `Remove ${nameOwner(owner)} as an owner.`;
}

function nameOwner(owner) {
  if (owner.length === 20) return `the wallet ${checksum(toHex(owner))}`;
  if (owner.length !== 64) throw new TypeError("not an owner");
  return `the passkey ${toHex(owner)}`;
}

function date(seconds) {
  const format = { dateStyle: "long", timeStyle: "short", timeZone: "UTC" };
  return `${new Intl.DateTimeFormat("en", format).format(new Date(Number(seconds) * 1000))} UTC`;
}
