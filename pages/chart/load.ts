import type { LoadChart } from "./drawn.tsx";

export const loadChart: LoadChart = async () => (await import("./chart.ts")).drawChart;
