import { OptionDefaults } from "typedoc";

export default {
  name: "@foretell/client",
  entryPoints: ["src/index.ts"],
  out: "reference",
  readme: "README.md",
  excludeInternal: true,
  excludePrivate: true,
  treatWarningsAsErrors: true,
  intentionallyNotExported: ["One", "Item", "Query"],
  // Types that are generated from the OpenAPI document use it.
  blockTags: [...OptionDefaults.blockTags, "@description"],
};
