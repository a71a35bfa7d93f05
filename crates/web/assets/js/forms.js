// Forms that survive the end of a session.

const STORED = "form";

const isKept = ({ name, type }) => name && !["hidden", "password", "file"].includes(type);

function keep({ target: form }) {
  if (!("keep" in form.dataset)) return;
  const values = ({ name, value, checked }) => [name, value, checked];
  const fields = [...form.elements].filter(isKept).map(values);
  sessionStorage.setItem(STORED, JSON.stringify({ path: location.pathname, id: form.id, fields }));
}

// Only the sign-in page passes the fields on: after any other page, they were received.
function restore() {
  const kept = JSON.parse(sessionStorage.getItem(STORED) ?? "{}");
  const isSignIn = document.querySelector("[data-purpose=sign-in]");
  if (!isSignIn) sessionStorage.removeItem(STORED);
  else if (kept.path) sessionStorage.setItem(STORED, JSON.stringify({ ...kept, hasExpired: true }));
  const form = kept.hasExpired && kept.path === location.pathname && document.getElementById(kept.id);
  if (!form) return;
  const fields = [...form.elements].filter(isKept);
  if (fields.map(({ name }) => name).join() !== kept.fields.map(([name]) => name).join()) return;
  fields.forEach((field, i) => Object.assign(field, { value: kept.fields[i][1], checked: kept.fields[i][2] }));
}

export function start() {
  document.addEventListener("submit", keep);
  restore();
}
