// Wallets in the browser: discovery (EIP-6963) and signing acts (EIP-712).

import { fromHex, toHex } from "./bytes.js";
import { typedData } from "./eip712.js";
import { announce } from "./page.js";

let listening;

// A wallet that is found later shows no button any more.
export const stopListing = () => listening?.abort();

// Shows a button in `list` for each wallet, and calls `pick` with the wallet's provider.
export function listWallets(list, pick) {
  const buttons = new Map();
  list.textContent = "No wallet was found in this browser.";
  stopListing();
  listening = new AbortController();
  addEventListener("eip6963:announceProvider", ({ detail: { info, provider } }) => {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    // Nothing is loaded from other sites.
    if (info.icon?.startsWith("data:image/")) {
      button.append(Object.assign(new Image(24, 24), { src: info.icon, alt: "" }));
    }
    button.append(info.name);
    button.onclick = () => pick(provider).catch((error) => announce(error.message, list));
    buttons.set(info.uuid, button);
    list.replaceChildren(...buttons.values());
  }, { signal: listening.signal });
  dispatchEvent(new Event("eip6963:requestProvider"));
}

export const accounts = (provider) => provider.request({ method: "eth_requestAccounts" });

// Signs a batch as typed data with an address that owns the account.
export async function signBatch(provider, batch, owners) {
  const owned = owners.map((owner) => owner.toLowerCase());
  const address = (await accounts(provider)).find((candidate) => owned.includes(candidate.toLowerCase()));
  if (!address) throw new Error("Choose an owner of the account in the wallet.");
  const chainId = "0x" + Number(batch.chainId).toString(16);
  // Wallets sign typed data only for the chain that they are on.
  if (BigInt(await provider.request({ method: "eth_chainId" })) !== BigInt(chainId)) {
    await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
  }
  const params = [address, JSON.stringify(typedData(batch))];
  const signature = fromHex(await provider.request({ method: "eth_signTypedData_v4", params }));
  // Some hardware wallets return 0 or 1 instead of 27 or 28.
  if (signature[64] < 27) signature[64] += 27;
  return { address, signature: toHex(signature) };
}
