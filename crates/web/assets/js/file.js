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
  const readOrSay = () => read().catch((error) => announce(error.message, input.form));
  input.addEventListener("change", readOrSay);
  // The file may have been chosen before this module was loaded. A text that is there is the user's.
  if (!elements.text.value) readOrSay();
}
