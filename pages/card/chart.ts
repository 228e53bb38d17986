/** The program that a card loads through its host to draw a chart. It sets a global function. */
import { drawChart } from "../chart/chart.ts";

Object.assign(globalThis, { drawChart });
