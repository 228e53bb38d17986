// The sample archive in a container, behind a proxy, because the archive listens only on loopback.
import { connect, createServer } from "node:net";
import { startSampleArchive } from "../../tools/weather/sample-archive/server.ts";

await startSampleArchive({ port: 8002, controls: true });
createServer((socket) => {
  const archive = connect(8002, "127.0.0.1");
  socket.pipe(archive).pipe(socket);
  for (const end of [socket, archive]) end.on("error", () => [socket, archive].map((one) => one.destroy()));
}).listen(8003, "0.0.0.0");
process.once("SIGTERM", () => process.exit(0));
