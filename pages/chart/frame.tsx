import { type FC, useEffect, useRef } from "hono/jsx/dom";
import type { ChartView } from "../../core/author/index.ts";
import type { drawChart } from "./chart.ts";

/** Loads the code that draws charts, which only pages and cards with a chart need. */
export type LoadChart = () => Promise<typeof drawChart>;

interface ChartProps {
  view: ChartView;
  result: unknown;
  load: LoadChart;
  /** Called if there is nothing to draw, the browser cannot draw it, or the code cannot be loaded. */
  onFailure(): void;
}

export const Chart: FC<ChartProps> = ({ view, result, load, onFailure }) => {
  const frame = useRef<HTMLElement | null>(null);
  useEffect(() => {
    let isOver = false;
    let remove: (() => void) | undefined;
    load()
      .then((draw) => {
        if (isOver || !frame.current) return;
        remove = draw(frame.current, view, result);
        if (!remove) onFailure();
      })
      .catch(() => isOver || onFailure());
    return () => {
      isOver = true;
      remove?.();
    };
  }, []);
  return <div class="chart" ref={frame} />;
};
