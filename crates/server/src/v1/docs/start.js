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
  layout: "BaseLayout",
});
