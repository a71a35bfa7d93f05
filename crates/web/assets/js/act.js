// An act: a batch of calls that an owner of the account signs.

import { toHex } from "./bytes.js";
import { describeCalls } from "./describe.js";
import { batchDigest } from "./eip712.js";
import { parseUnits } from "./format.js";
import { announce } from "./page.js";
import { explain, signDigest } from "./passkey.js";
import { get, pause, post, visit } from "./request.js";
import { listWallets, signBatch } from "./wallet.js";

const STATES = {
  prepared: "Waiting for your signature",
  signed: "Signed. Waiting to be sent",
  sent: "Sent. Waiting for its block",
  done: "Done",
  failed: "Failed",
  expired: "Expired before it was on the chain. Nothing has changed",
};
const FOLLOW_MS = 2_000;
const MOST_ATTEMPTS = 5;

// Checks that the server asks for a signature over what it shows. Returns the digest and one
// sentence for each call. `known` has the addresses and the chain id of the page.
export function reviewAct(act, known) {
  const isOwn = act.account.toLowerCase() === known.account.toLowerCase();
  if (!isOwn || Number(act.chainId) !== Number(known.chainId)) throw new Error("The act is for another account.");
  const digest = batchDigest(act);
  if (toHex(digest) !== act.digest.toLowerCase()) throw new Error("The digest is not that of the calls.");
  return { digest, sentences: describeCalls(act.calls, known) };
}

// Sends a signature. If the answer is lost, looks the act up by its id and sends the same signature
// again only if the act still waits for it.
export async function sendSignature(id, signature, { get, post, pause }) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await post(`/app/acts/${id}/signature`, signature);
    } catch (error) {
      if (!error.isUncertain || attempt === MOST_ATTEMPTS) throw error;
      await pause(500 * 2 ** attempt);
      const act = await get(`/app/acts/${id}`).catch(() => ({ state: "prepared" }));
      if (act.state !== "prepared") return act;
    }
  }
}

// Follows an act to its end, through lost connections. `show` gets each of its states.
export async function followAct(act, show, { get, pause }) {
  for (;;) {
    show(act);
    if (["done", "failed", "expired"].includes(act.state)) return act;
    await pause(FOLLOW_MS);
    act = await get(`/app/acts/${act.id}`).catch((error) => {
      if (!error.isUncertain && error.status !== 429) throw error;
      return act;
    });
  }
}

// Shows the sentences in the dialog, and resolves with the owner's signature. Rejects if the dialog
// is closed.
function requestSignature(dialog, act, { digest, sentences }, rpId) {
  const part = (name) => dialog.querySelector(`[data-${name}]`);
  part("calls").replaceChildren(...sentences.map((sentence) =>
    Object.assign(document.createElement("li"), { textContent: sentence })));
  const passkeys = act.owners.filter(({ kind }) => kind === "passkey").map((owner) => owner.credentialId);
  const wallets = act.owners.filter(({ kind }) => kind === "wallet").map((owner) => owner.address);
  part("passkey").hidden = !passkeys.length;
  part("wallets").hidden = !wallets.length;
  part("digest").textContent = act.digest;
  dialog.showModal();
  return new Promise((done, fail) => {
    dialog.onclose = () => fail(new Error("Not signed."));
    part("passkey").onclick = () => signDigest(digest, rpId, passkeys)
      .then((passkey) => done({ passkey }), (error) => announce(explain(error), dialog));
    listWallets(part("wallets"), async (provider) => done({ wallet: await signBatch(provider, act, wallets) }));
  }).finally(() => dialog.close());
}

function showState(form, { state, reason, txHash }) {
  announce(reason ? `${STATES[state]}: ${reason}` : STATES[state], form);
  form.dataset.state = state;
  if (txHash) form.querySelectorAll("[data-tx]").forEach((link) => (link.href = `/tx/${txHash}`));
}

// The form's fields. Amounts, which have data-units, become strings of their smallest unit.
export function readFields(form) {
  const fields = Object.fromEntries(new FormData(form));
  for (const { name, value, dataset } of form.querySelectorAll("[data-units]:enabled")) {
    const units = parseUnits(value, Number(dataset.units));
    if (!units) throw new Error("An amount must be above zero, such as 12.50.");
    fields[name] = String(units);
  }
  return fields;
}

// Lets an owner sign the act of a form, and follows it to its receipt.
export async function signForm(form) {
  const { kind, dialog, rpId, next } = form.dataset;
  const act = await post("/app/acts", { ...readFields(form), kind });
  const review = reviewAct(act, form.dataset);
  const signature = await requestSignature(document.getElementById(dialog), act, review, rpId);
  const sent = await sendSignature(act.id, signature, { get, post, pause });
  const end = await followAct({ ...act, ...sent }, (state) => showState(form, state), { get, pause });
  if (end.state === "done") visit(next ?? `/acts/${act.id}`);
}

// Signs and follows the acts of a form, or follows the act of a receipt.
export function start(element) {
  const { act } = element.dataset;
  const fail = (error) => announce(error.message, element);
  if (act) {
    get(`/app/acts/${act}`).then((found) => followAct(found, (state) => showState(element, state), { get, pause })).catch(fail);
    return;
  }
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    if (element.dataset.busy) return;
    element.dataset.busy = "true";
    signForm(element).catch(fail).finally(() => delete element.dataset.busy);
  });
}
