import { OptionDefaults } from "typedoc";

export default {
  name: "@foretell/client",
  entryPoints: ["src/index.ts"],
  out: "reference",
  readme: "README.md",
  excludeInternal: true,
  excludePrivate: true,
  treatWarningsAsErrors: true,
  // A checkout without a remote, such as an archive, has nothing to link to.
  disableSources: true,
  intentionallyNotExported: ["One", "Item", "Query"],
  // Types that are generated from the OpenAPI document use it.
  blockTags: [...OptionDefaults.blockTags, "@description"],
};
