// Reads a chosen file into the form's text field.

import { announce } from "./page.js";

export function start(input) {
  const { elements } = input.form;
  const read = async () => {
    const [file] = input.files;
    if (!file) return;
    elements.text.value = await file.text();
    elements.format.value = file.name.endsWith(".json") ? "json" : "yaml";
    announce(`${file.name} was read.`, input.form);
  };
  input.addEventListener("change", () => read().catch((error) => announce(error.message, input.form)));
}
