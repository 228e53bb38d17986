import { type FC, useEffect, useRef } from "hono/jsx/dom";
import type { ChartView } from "../../core/definitions/view.ts";

/** A chart, drawn again when the page changes to dark or light. */
export const Chart: FC<{ view: ChartView; result: unknown; onFailure(): void }> = ({ view, result, onFailure }) => {
  const frame = useRef<HTMLElement | null>(null);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    let isOver = false;
    let end = () => {};
    // Only pages with a chart load the library.
    import("./chart.ts")
      .then(({ drawChart }) => {
        if (isOver) return;
        const chart = drawChart(element, view, result);
        if (!chart) return onFailure();
        const dark = matchMedia("(prefers-color-scheme: dark)");
        const redraw = () => chart.redraw();
        dark.addEventListener("change", redraw);
        end = () => {
          dark.removeEventListener("change", redraw);
          chart.destroy();
        };
      })
      .catch(() => {
        if (!isOver) onFailure();
      });
    return () => {
      isOver = true;
      end();
    };
  }, []);
  return <div class="chart" ref={frame} />;
};
