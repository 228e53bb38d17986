/** A web hook whose host name resolves to a public address when it is verified, and to a private one at a delivery. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { expect, test } from "vitest";

const PUBLIC = "11.22.33.44";
const PRIVATE = [
  "127.0.0.1",
  "127.1.2.3",
  "10.0.0.1",
  "100.64.0.1",
  "169.254.169.254",
  "172.16.0.1",
  "192.168.0.1",
  "::1",
  "::ffff:10.0.0.1",
  "fd00::1",
  "fe80::1",
];

/** Starts a command with its own users, mounts and network, for which Linux does not require root. */
const APART = ["unshare", "-r", "-m", "-n"];
const [apart = "", ...ownNetwork] = APART;
const { exitCode } = await execa(apart, [...ownNetwork, "sh", "-c", "ip link set lo up && openssl version"], {
  reject: false,
});

/** Makes a certificate `NAME.pem` and its key `NAME.key`. */
const certify = (folder: string, name: string, more: string[]) =>
  execa("openssl", [
    ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"],
    ...["-keyout", `${folder}/${name}.key`, "-out", `${folder}/${name}.pem`, ...more],
  ]);

test.skipIf(exitCode !== 0)(
  "nothing is sent to the private address, and the event is delivered once the name is public again",
  {
    timeout: 180_000,
  },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "rebinding-"));
    try {
      await certify(folder, "ca", ["-subj", "/CN=authority"]);
      const leaf = ["-subj", "/CN=example.com", "-addext", "subjectAltName=DNS:*.example.com"];
      const signed = ["-addext", "basicConstraints=critical,CA:FALSE", "-CA", `${folder}/ca.pem`];
      await certify(folder, "cert", [...leaf, ...signed, "-CAkey", `${folder}/ca.key`]);
      await writeFile(join(folder, "hosts"), "127.0.0.1 localhost\n");
      const addresses = [PUBLIC, ...PRIVATE].filter((address) => !/^(127\.|::)/.test(address));
      const script = [
        "ip link set lo up",
        ...addresses.map((address) => `ip addr add ${address}/${address.includes(":") ? 128 : 32} dev lo`),
        "mount -t tmpfs none /etc/ssl",
        `mkdir /etc/ssl/certs && cp ${folder}/ca.pem /etc/ssl/certs/ca-certificates.crt`,
        `mount --bind ${folder}/hosts /etc/hosts`,
        `exec ${process.execPath} test/events/rebinding/program.ts ${folder} ${PUBLIC} ${PRIVATE.join(" ")}`,
      ].join(" && ");
      const { stdout } = await execa(apart, [...ownNetwork, "sh", "-c", script], {
        env: { RESONATE_URL: "", RESONATE_HOST: "" },
      });
      const { verified, errors, rebound, again } = JSON.parse(stdout.split("\n").at(-1) ?? "");
      expect(verified).toHaveLength(PRIVATE.length);
      for (const one of verified) expect(one).toMatchObject({ address: PUBLIC, type: "verification" });
      expect(errors).toEqual([null, ...PRIVATE.slice(1).map(() => "connection_refused")]);
      expect(rebound.connected).toEqual([PUBLIC]);
      expect(rebound.reached).toEqual([{ host: "hooks0.example.com", address: PUBLIC, type: "event" }]);
      for (const one of again) expect(one).toMatchObject({ address: PUBLIC, type: "event" });
      expect(new Set(again.map(({ host }: { host: string }) => host)).size).toBe(PRIVATE.length - 1);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
