import { expect, test } from "vitest";
import { swallowedByNpm } from "./start-options.ts";

test.each([
  [{ npm_config_open: "true" }, [], "--open"],
  [{ npm_config_memory: "true", npm_config_plain: "true" }, [], "--memory --plain"],
  [{ npm_config_port: "true" }, ["9000"], "--port 9000"],
  [{ npm_config_worker_port: "9001", npm_config_data: "true" }, ["a", "b"], "--worker-port 9001 --data DIR"],
  [{ npm_config_loglevel: "silent" }, [], undefined],
])("of the environment %j and the arguments %j, npm took %s", (env, args, options) => {
  expect(swallowedByNpm(args, [], { npm_lifecycle_event: "start", ...env })).toBe(options);
  expect(swallowedByNpm(args, [], env)).toBeUndefined();
});
