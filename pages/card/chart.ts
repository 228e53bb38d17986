/** The program that a card loads through its host when there is a chart to draw: it sets a global function. */
import { drawChart } from "../chart/chart.ts";

Object.assign(globalThis, { drawChart });
