import { expect, test } from "vitest";
import { printable } from "./print.ts";

test("no foreign text moves the cursor, sets the title, rings, or turns the direction of a terminal", () => {
  const text = "a\u001b]0;title\u0007\u001b[2J\u009b31m\r\u007f\u0000\u202egnp\u2066\u200f\u061c\u2028b";
  expect(printable(text)).toBe(
    "a\\u001b]0;title\\u0007\\u001b[2J\\u009b31m\\u000d\\u007f\\u0000\\u202egnp\\u2066\\u200f\\u061c\\u2028b",
  );
});

test("words in any script, line breaks and tabs stay, and JSON means the same", () => {
  const text = "né, 日本, שלום, 👩‍👩‍👧\n\tnext";
  expect(printable(text)).toBe(text);
  const value = { job: "\u001b[31m\u009b\u202e\u007f" };
  expect(JSON.parse(printable(JSON.stringify(value, undefined, 2)))).toEqual(value);
});
