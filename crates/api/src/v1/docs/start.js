// The library nests links in buttons and leaves controls without names. Screen readers and keyboards need better.
const accessible = (system) => ({
  wrapComponents: {
    // A link inside the button that opens an operation. The address follows the operation without it.
    DeepLink: () => (props) => system.React.createElement("span", null, props.text),
  },
});

// The level of each heading, by its place in the page and not by the library's element.
const levels = [
  [".opblock-tag", 2],
  ["section.models > h4", 2],
  [".opblock-section-header h4, .opblock-body h4, .responses-inner h4", 3],
  [".opblock-body h5, .responses-inner h5", 4],
];

const nameOf = (control) => {
  const row = control.closest("tr[data-param-name]");
  if (row) return row.dataset.paramName;
  if (control.closest(".servers")) return "Server";
  if (control.classList.contains("body-param__text")) return "Request body";
  if (control.closest(".content-type-wrapper, .body-param-content-type")) return "Media type";
  return control.placeholder || control.getAttribute("title") || "Value";
};

const improve = () => {
  const root = document.getElementById("reference");
  for (const [selector, level] of levels) {
    for (const heading of root.querySelectorAll(selector)) heading.setAttribute("aria-level", level);
  }
  for (const control of root.querySelectorAll("select, input, textarea")) {
    if (!control.labels?.length || control.closest(".servers")) control.setAttribute("aria-label", nameOf(control));
  }
  for (const button of root.querySelectorAll("button:not([aria-label])")) {
    if (!button.textContent.trim()) button.setAttribute("aria-label", button.title || "Toggle");
  }
  for (const table of root.querySelectorAll("[role=region][id]")) table.setAttribute("aria-label", table.id);
  // Regions that scroll can be scrolled with the keyboard.
  for (const region of root.querySelectorAll("pre, .highlight-code > *, .table-container")) {
    if (region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight) region.tabIndex = 0;
  }
};

SwaggerUIBundle({
  // The page says whose reference it is.
  url: document.getElementById("reference").dataset.contract,
  dom_id: "#reference",
  // No badge: it would ask a foreign host about this document.
  validatorUrl: null,
  queryConfigEnabled: false,
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  // A key typed in here stays in this page and is gone with it.
  persistAuthorization: false,
  tryItOutEnabled: true,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [accessible],
  layout: "BaseLayout",
});

let isPlanned = false;
new MutationObserver(() => {
  if (isPlanned) return;
  isPlanned = true;
  requestAnimationFrame(() => {
    isPlanned = false;
    improve();
  });
}).observe(document.getElementById("reference"), { childList: true, subtree: true });
