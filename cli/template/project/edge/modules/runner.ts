import { RunnerServer } from "durable-mcp-edge/runner";
import { runs } from "../../tools/runs.ts";

export const createRunner = (env: object) => new RunnerServer(env, runs);
