import { expect, test } from "vitest";
import { serveHttp } from "../../../testing/stack/http-server.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { startResonate } from "../../support/resonate.ts";

test("requests go only to the archive and to Resonate, even if a job or the archive names other addresses", async () => {
  await using elsewhere = await serveHttp((_req, res) => res.end("{}"));
  const other = new URL(elsewhere.url).host;

  await using archive = await startSampleArchive();
  await using resonate = await startResonate();
  const { group, namespace, env } = ownGroup();
  const hook = new URL("../scripts/record-requests.mts", import.meta.url).href;
  const NODE_OPTIONS = `--import ${hook}`;
  await using worker = await startWorker({ ...resonate.env, ...env, WEATHER_API_URL: archive.url, NODE_OPTIONS });

  const month = { latitude: 47.6, longitude: -122.3, year: 2013, month: 5 };
  const location = `http://${other}/v1/archive`;
  archive.control.inject({ fault: { kind: "status", status: 307, location }, month: "2013-05", times: 1 });
  const jobs = {
    "weather_data_47.6_-122.3_2013_5": month,
    "weather_data_47.6_-122.3_2013_6": { ...month, month: 6, timezone: `@${other}/` },
    "weather_data_47.6_-122.3_2013_7": { ...month, month: 7, timezone: `auto#http://${other}` },
    "weather_data_47.6_-122.3_2013_8": { ...month, month: 8, url: location, host: other },
  };
  for (const [name, args] of Object.entries(jobs)) {
    await resonate.start({ id: namespace + name, func: "weather_data", args, group });
  }
  for (const name of Object.keys(jobs)) await resonate.settled(namespace + name);

  expect(archive.control.requests.total).toBe(4);
  const origins = worker.logs().flatMap(({ msg, origin }) => (msg === "request" ? [origin] : []));
  expect(new Set(origins)).toEqual(new Set([new URL(archive.url).origin, new URL(resonate.url).origin]));
});
