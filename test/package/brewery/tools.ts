/** Tools with names and types unlike any of this repository: one in plain JSON Schema, and another one on the same job. */
import * as z from "zod";
import { defineDurableTool, defineTool, HOUR, hashed, jsonSchema, type Tool } from "../../../core/index.ts";

interface Recipe {
  style: "pils" | "stout";
  malts: { name: string; kilograms: number }[];
  "dry hopped"?: boolean;
}

interface Beer {
  litres: number;
  steps: [name: string, degrees: number][];
  remark: string | null;
}

export const brewAle = defineDurableTool<Recipe, Beer>({
  name: "Brew.Ale-2",
  title: "Brauen",
  description: "Brews a beer.",
  input: jsonSchema<Recipe>({
    type: "object",
    properties: {
      style: { enum: ["pils", "stout"], description: "pils or stout." },
      malts: {
        type: "array",
        minItems: 1,
        items: {
          type: "object",
          properties: { name: { type: "string" }, kilograms: { type: "number", exclusiveMinimum: 0 } },
          required: ["name", "kilograms"],
        },
        description: "At least one malt, each with its name and kilograms.",
      },
      "dry hopped": { type: "boolean" },
    },
    required: ["style", "malts"],
  }),
  output: jsonSchema<Beer>({
    type: "object",
    properties: {
      litres: { type: "number" },
      steps: { type: "array", items: { type: "array", items: [{ type: "string" }, { type: "number" }] } },
      remark: { type: ["string", "null"] },
    },
    required: ["litres", "steps", "remark"],
  }),
  prefix: "Sud.",
  id: async (recipe) => `${recipe.style} ${await hashed(recipe)}`,
  deadline: 48 * HOUR,
});

export const orderAle = defineDurableTool({
  job: brewAle.job,
  name: "order.ale",
  title: "Order",
  description: "Has a beer brewed of one malt, and does not wait for it.",
  input: z.object({ malt: z.string().describe("The malt.") }),
  args: ({ malt }) => ({ style: "stout" as const, malts: [{ name: malt, kilograms: 5 }] }),
  output: z.object({ batch: z.string(), first: z.boolean() }),
  answer: ({ jobName, status }) => ({ batch: jobName, first: status === "running" }),
});

export const strength = defineTool({
  name: "STRENGTH",
  title: "Strength",
  description: "Computes the alcohol by volume.",
  input: z.object({
    plato: z.tuple([z.number(), z.number()]).describe("Original and final extract, in degrees Plato."),
  }),
  output: z.object({ percent: z.number() }),
  run: async ({ plato: [before, after] }) => ({ percent: Math.round((before - after) * 5.3) / 10 }),
});

/** Its deadline is an argument, which may be in the past. */
export const tapKeg = defineDurableTool({
  name: "tap_keg",
  title: "Tap",
  description: "Taps a keg for an occasion, by a time.",
  input: z.object({
    occasion: z.string().describe("The occasion."),
    by: z.iso.datetime().describe("By when, in UTC."),
  }),
  id: ({ occasion }) => (occasion === "none" ? (undefined as never) : occasion),
  deadline: ({ by }) => Date.parse(by),
});

export const tools: readonly Tool[] = [strength, brewAle, orderAle, tapKeg];
