import type { LoadChart } from "./frame.tsx";

export const loadChart: LoadChart = async () => (await import("./chart.ts")).drawChart;
