/**
 * The allowed imports between rooms, including types: no cycles, and no import from a lower room into a higher one. Of core's
 * layers, other rooms import the faces (`index.ts`) alone; a module that they load when it is needed is named as it is.
 */
import { defineConfig, type DummyRuleMap } from "oxlint";

const ROOMS = "core client features functions worker wrap tools server cli testing infra pages test lab".split(" ");

/** The only files outside of features/ that import features, each file by file: they list the features of a room. */
const COMPOSITIONS = {
  functions: ["functions/{built-in,composition,config,edge,job-features}.ts"],
  objects: ["functions/objects/composition.ts"],
  server: ["server/object/object-server.ts"],
  worker: ["worker/{child-start-features,composition,config,worker}.ts", "worker/runner/runner-server.ts"],
  cli: ["cli/wrap/serve-calls.ts"],
  testing: ["testing/simulation/step-features.ts", "testing/stack/callbacks.ts"],
};

/** The layers of core/, lowest first. */
const LAYERS = ["resonate", "author", "engine", "jobs", "tools"];

/** A module of a layer behind its face. A pattern without a look-ahead, which the linter's patterns lack. */
const BEHIND_FACES = `^(\\.\\./)+core/(${LAYERS.join("|")})/(.+/|[^i]|i[^n]|in[^d])`;

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
const roomsBut = (...rooms: string[]) => `^(\\.\\./)+(${ROOMS.filter((room) => !rooms.includes(room)).join("|")})/`;

/** The same, and past the faces of core. */
const allBut = (...rooms: string[]) => [roomsBut(...rooms), BEHIND_FACES];

const ONLY_COMPOSITIONS = "Only the compositions that this configuration names import features/.";

const FEATURES_RULE =
  "A feature imports core/, and what is generic in functions/http/ and functions/auth/; no other feature.";
const NOT_IN_FEATURES = [
  ...allBut("core", "features", "functions"),
  "^(\\.\\./)+features/",
  "^(\\.\\./)+functions/((mcp|calls|objects)/|[^/]+$)",
];

/** The rule for the files of a layer that are `depth` folders below core/. */
function layer(i: number, paths: string, depth: number, { sdk = true } = {}) {
  const up = `^(\\.\\./){${depth}}`;
  const above = LAYERS.slice(i + 1);
  const not = [`${up}(\\.\\.|index)`, ...(above.length > 0 ? [`${up}(${above.join("|")})/`] : [])];
  const below = LAYERS.slice(0, i).join(", ") || "nothing";
  return files([`core/${LAYERS[i]}/${paths}`], `core/${LAYERS[i]}/ imports what is below it: ${below}.`, not, { sdk });
}

/** Rules beyond those that find errors. */
const STYLE: DummyRuleMap = {
  eqeqeq: ["error", "always", { null: "ignore" }],
  "no-console": "error",
  "no-control-regex": "error",
  "no-empty": ["error", { allowEmptyCatch: true }],
  "no-fallthrough": "error",
  "no-var": "error",
  "no-async-promise-executor": "error",
  "no-case-declarations": "error",
  "no-sequences": "error",
  "prefer-const": "error",
  "prefer-exponentiation-operator": "error",
  "prefer-rest-params": "error",
  "typescript/consistent-type-imports": ["error", { disallowTypeAnnotations: false }],
  "typescript/no-explicit-any": "error",
  "typescript/no-namespace": "error",
  "typescript/no-non-null-assertion": "error",
  "unicorn/prefer-node-protocol": "error",
};

/** Rules that find errors elsewhere. The compiler finds unused names; the pages' library is not React. */
const UNWANTED: DummyRuleMap = {
  "import/default": "off",
  "jsx-a11y/control-has-associated-label": "off",
  "jsx-a11y/prefer-tag-over-role": "off",
  "no-unused-expressions": "off",
  "no-unused-vars": "off",
  "react/immutability": "off",
  "react/purity": "off",
  "react/exhaustive-deps": "off",
  "unicorn/no-new-array": "off",
  "unicorn/no-useless-spread": "off",
  "unicorn/prefer-string-starts-ends-with": "off",
};

/** Code whose output is for a person at a terminal. */
const WRITES_TO_CONSOLE = [
  "{server,testing,infra,test,lab}/**",
  // The rest of cli/ prints through the first of these, as its text may come from outside.
  "cli/terminal/print.ts",
  "cli/doctor/doctor.ts",
  "cli/main.ts",
  "tools/weather/sample-archive/**",
  "worker/runner/log.ts",
];

export default defineConfig({
  plugins: ["import", "jsx-a11y", "oxc", "react", "typescript", "unicorn"],
  categories: { correctness: "error" },
  ignorePatterns: ["dist", ".build", "cli/template"],
  rules: { "import/no-cycle": ["error", { ignoreTypes: false }], ...STYLE, ...UNWANTED },
  overrides: [
    { files: WRITES_TO_CONSOLE, rules: { "no-console": "off" } },
    ...LAYERS.flatMap((_layer, i) => [layer(i, "*.ts", 1), layer(i, "*/*.ts", 2)]),
    // This file imports only types of the SDK.
    layer(LAYERS.indexOf("tools"), "mcp.ts", 1, { sdk: false }),
    files(["functions/**"], `functions/ imports core/ and pages/. ${ONLY_COMPOSITIONS}`, allBut("core", "pages"), {
      sdk: true,
    }),
    files(
      [...COMPOSITIONS.functions, ...COMPOSITIONS.objects],
      "functions/ imports core/, features/ and pages/.",
      allBut("core", "features", "pages"),
      { sdk: true },
    ),
    files(
      ["functions/{sdk,mcp/answer-with-sdk}.ts"],
      `functions/ imports core/ and pages/. ${ONLY_COMPOSITIONS}`,
      allBut("core", "pages"),
    ),
    files(["features/**"], FEATURES_RULE, NOT_IN_FEATURES, { sdk: true }),
    files(["features/*/*.ts"], FEATURES_RULE, [...NOT_IN_FEATURES, "^\\.\\./\\w"], { sdk: true }),
    files(["features/*/*/*.ts"], FEATURES_RULE, [...NOT_IN_FEATURES, "^\\.\\./\\.\\./\\w"], { sdk: true }),
    files(["client/**", "infra/**"], "It imports core/ alone.", allBut("core")),
    files(["server/**"], `server/ imports core/. ${ONLY_COMPOSITIONS}`, allBut("core")),
    files(COMPOSITIONS.server, "server/ imports core/ and features/.", allBut("core", "features")),
    files(["worker/**"], `worker/ imports core/. ${ONLY_COMPOSITIONS}`, allBut("core")),
    files(COMPOSITIONS.worker, "worker/ imports core/ and features/.", allBut("core", "features")),
    files(["wrap/**"], "wrap/ imports the faces of core/ and worker/.", [
      ...allBut("core", "worker"),
      "^(\\.\\./)+worker/(.+/)?([^i]|i[^n]|in[^d])[^/]*$",
    ]),
    files(["functions/index.ts", "worker/main.ts"], "An entry names tools, and nothing else.", allBut("tools")),
    files(
      ["functions/objects.ts"],
      "The objects of the deployment load the code of the server, the worker and the tools.",
      allBut("server", "worker", "tools"),
    ),
    files(["pages/**"], "pages/ imports core/ and functions/.", allBut("core", "functions")),
    files(["tools/**"], "Tools use the public API alone.", [
      roomsBut("core", "functions", "worker", "testing"),
      "^(\\.\\./)+(core|functions|worker|testing)/(.+/|[^i])",
    ]),
    files(["cli/**", "testing/**"], `Only entries, tests and programs of lab/ know tools. ${ONLY_COMPOSITIONS}`, [
      "^(\\.\\./)+(features|tools|test|lab)/",
      BEHIND_FACES,
    ]),
    files([...COMPOSITIONS.cli, ...COMPOSITIONS.testing], "Only entries, tests and programs of lab/ know tools.", [
      "^(\\.\\./)+(tools|test|lab)/",
      BEHIND_FACES,
    ]),
    { files: ["lab/**"], rules: { "no-restricted-imports": "off" } },
    files(["**/*.test.ts", "test/**"], "Tests import nothing from lab/.", ["^(\\.\\./)+lab/"]),
  ],
});
