/** The allowed imports between rooms, including types: no cycles, and no import from a lower room into a higher one. */
import { defineConfig } from "oxlint";

const ROOMS = "core client features functions worker wrap tools server cli testing infra pages test lab".split(" ");

/** The layers of core/, lowest first. */
const LAYERS = ["resonate", "author", "engine", "jobs", "tools"];

const SDK = {
  name: "@modelcontextprotocol/server",
  message: "Only a module that is loaded when it is needed imports the SDK; its types are in core/tools/mcp.ts.",
};

/** A rule that `paths` import nothing that matches `not`. `sdk` forbids the SDK as well, in code that every request loads. */
const files = (paths: string[], message: string, not: string[], { sdk = false } = {}) => ({
  files: paths,
  rules: {
    "no-restricted-imports": [
      "error",
      { patterns: not.map((regex) => ({ regex, message })), ...(sdk && { paths: [SDK] }) },
    ] as never,
  },
});

/** A pattern for imports, from a folder of another room, into any room except these. */
const allBut = (...rooms: string[]) => [`^(\\.\\./)+(${ROOMS.filter((room) => !rooms.includes(room)).join("|")})/`];

/** The rule for the files of a layer that are `depth` folders below core/. */
function layer(i: number, paths: string, depth: number, { sdk = true } = {}) {
  const up = `^(\\.\\./){${depth}}`;
  const above = LAYERS.slice(i + 1);
  const not = [`${up}(\\.\\.|index)`, ...(above.length > 0 ? [`${up}(${above.join("|")})/`] : [])];
  const below = LAYERS.slice(0, i).join(", ") || "nothing";
  return files([`core/${LAYERS[i]}/${paths}`], `core/${LAYERS[i]}/ imports what is below it: ${below}.`, not, { sdk });
}

export default defineConfig({
  plugins: ["import"],
  categories: { correctness: "off" },
  ignorePatterns: ["dist", ".build", "cli/template"],
  rules: { "import/no-cycle": ["error", { ignoreTypes: false }] },
  overrides: [
    ...LAYERS.flatMap((_layer, i) => [layer(i, "*.ts", 1), layer(i, "*/*.ts", 2)]),
    // This file imports only types of the SDK.
    layer(LAYERS.indexOf("tools"), "mcp.ts", 1, { sdk: false }),
    files(["functions/**"], "functions/ imports core/, features/ and pages/.", allBut("core", "features", "pages"), {
      sdk: true,
    }),
    files(
      ["functions/{sdk,mcp/answer-with-sdk}.ts"],
      "functions/ imports core/ and features/.",
      allBut("core", "features"),
    ),
    files(
      ["features/**"],
      "features/ imports core/, and of functions/ and worker/ what they allow.",
      ["^(\\.\\./)+(client|wrap|tools|server|cli|testing|infra|test|lab)/"],
      { sdk: true },
    ),
    files(
      ["functions/{mcp,calls,http,auth}/*.ts"],
      "Only the compositions import features/, file by file.",
      allBut("core", "pages"),
      { sdk: true },
    ),
    files(["functions/mcp/answer-with-sdk.ts"], "Only the compositions import features/.", allBut("core", "pages")),
    files(["client/**", "infra/**"], "It imports core/ alone.", allBut("core")),
    files(["server/**"], "server/ imports core/ and features/.", allBut("core", "features")),
    files(["worker/**"], "worker/ imports core/ and features/.", allBut("core", "features")),
    files(
      ["worker/{intake,execution,connection,process}/*.ts"],
      "Only the compositions import features/, file by file.",
      allBut("core"),
    ),
    files(["wrap/**"], "wrap/ imports core/ and worker/.", allBut("core", "worker")),
    files(["functions/index.ts", "worker/main.ts"], "An entry names tools, and nothing else.", allBut("tools")),
    files(
      ["functions/objects.ts"],
      "The objects of the deployment load the code of the server, the worker and the tools.",
      allBut("server", "worker", "tools"),
    ),
    files(["pages/**"], "pages/ imports core/, features/ and functions/.", allBut("core", "features", "functions")),
    files(["tools/**"], "Tools use the public API alone.", [
      ...allBut("core", "functions", "worker", "testing"),
      "^(\\.\\./)+(core|functions|worker|testing)/(.+/|[^i])",
    ]),
    files(["cli/**", "testing/**"], "Only entries, tests and programs of lab/ know tools.", [
      "^(\\.\\./)+(tools|test|lab)/",
    ]),
    { files: ["lab/**"], rules: { "no-restricted-imports": "off" } },
    files(["**/*.test.ts", "test/**"], "Tests import nothing from lab/.", ["^(\\.\\./)+lab/"]),
  ],
});
