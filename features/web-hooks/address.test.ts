import { expect, test } from "vitest";
import { callbackProblem } from "./address.ts";

const PRIVATE = [
  "127.0.0.1",
  "127.1",
  "127.255.255.254",
  "2130706433",
  "0x7f000001",
  "0x7f.1",
  "0177.0.0.1",
  "017700000001",
  "0",
  "0.0.0.0",
  "10.0.0.1",
  "10.255.255.255",
  "167772161",
  "012.0.0.1",
  "100.64.0.1",
  "100.127.255.255",
  "169.254.169.254",
  "2852039166",
  "0xa9fea9fe",
  "0251.0376.0251.0376",
  "169.254.43518",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.1",
  "192.0.2.1",
  "192.88.99.1",
  "192.168.0.1",
  "192.168.257",
  "3232235521",
  "198.18.0.1",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "１２７.0.0.1",
  "127。0。0。1",
  "[::]",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[::127.0.0.1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:a9fe:a9fe]",
  "[::ffff:10.0.0.1]",
  "[64:ff9b::7f00:1]",
  "[64:ff9b:1::1]",
  "[100::1]",
  "[2001::1]",
  "[2001:db8::1]",
  "[2002:7f00:1::]",
  "[fc00::1]",
  "[fd12:3456::1]",
  "[fe80::1]",
  "[fec0::1]",
  "[ff02::1]",
  "localhost",
  "LOCALHOST.",
  "a.localhost",
  "printer",
  "printer.local",
  "metadata.google.internal",
  "metadata.google.internal.",
  "router.lan",
  "nas.home.arpa",
];

test.each(PRIVATE)("https://%s/ may not receive web hooks, except this machine in development", (host) => {
  expect(callbackProblem(`https://${host}/hook`, false)).toBeDefined();
  if (!/^(127\.0|0x7f000001|2130706433|localhost|\[::1\])/.test(host)) return;
  expect(callbackProblem(`http://${host}:8080/hook`, true)).toBeUndefined();
});

test.each(["example.com", "a.b.example.com:8443", "8.8.8.8", "[2606:4700:4700::1111]", "xn--bcher-kva.ch"])(
  "https://%s/ may receive web hooks, and never without encryption",
  (host) => {
    expect(callbackProblem(`https://${host}/hook?of=me`, false)).toBeUndefined();
    expect(callbackProblem(`http://${host}/hook`, true)).toBeDefined();
  },
);
