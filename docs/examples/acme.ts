import { MINUTE } from "../../core/index.ts";
import { wrapServer } from "../../wrap/index.ts";

export const acme = wrapServer({
  name: "acme",
  url: "https://mcp.acme.example/mcp",
  headers: { Authorization: "Bearer $(ACME_TOKEN)" }, // the worker's environment has it
  tools: ["report_*", "search"],
  policies: { search: { repeatable: true, freshFor: 10 * MINUTE } },
});
