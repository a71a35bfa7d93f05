// Wallets that sign up, sign in, step up or are added: they sign a text of the service (EIP-4361).

import { toHex } from "./bytes.js";
import { announce } from "./page.js";
import { post, visit } from "./request.js";
import { accounts, listWallets, stopListing } from "./wallet.js";

// Signs a session's challenge with the wallet's first address. The text names `account`, if there is one.
export async function signText(provider, purpose, account) {
  const [address] = await accounts(provider);
  const { id, text } = await post("/app/challenges", { purpose, address, account });
  const message = toHex(new TextEncoder().encode(text));
  const signature = await provider.request({ method: "personal_sign", params: [message, address] });
  return { challengeId: id, wallet: { address, account, signature } };
}

export function start(list) {
  const { purpose, action, next } = list.dataset;
  const form = list.closest("form");
  listWallets(list, async (provider) => {
    if (form?.reportValidity() === false) return;
    const signed = await signText(provider, purpose, form?.elements.account?.value.trim() || undefined);
    const send = async (account) => {
      const answer = await post(action, { ...signed, account, terms: form?.elements.terms?.value });
      visit(next ?? answer.next ?? location.href);
    };
    await send().catch((error) => {
      if (error.code !== "SEVERAL_ACCOUNTS") throw error;
      showAccounts(list, error, send);
    });
  });
}

// Shows a button for each account that the wallet signs in to. The same signature counts for the one
// that the person chooses.
function showAccounts(list, { body: { detail, extensions } }, send) {
  // A wallet that is found only now must not replace the choices.
  stopListing();
  announce(detail, list);
  list.replaceChildren(...extensions.accounts.map(({ account, name, since }) => {
    const textContent = `${name}, ${account.slice(0, 10)}…, since ${since}`;
    const button = Object.assign(document.createElement("button"), { type: "button", title: account, textContent });
    button.onclick = () => send(account).catch((error) => announce(error.message, list));
    return button;
  }));
}
