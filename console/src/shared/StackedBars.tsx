import { useElementSize } from '@mantine/hooks';
import { useState, type KeyboardEvent, type PointerEvent } from 'react';
import { useFormat, useText } from '@/locales/language';
import { ceilingOf, colourOf, isDaily, placesOf, rangeOf, segmentsOf, tickIs, ticksOf, totalOf, type Bar, type Series } from './bars';
import { BarReadout } from './BarReadout';
import { BarsLegend } from './BarsLegend';
import { visible } from './untrusted';
import classes from './StackedBars.module.css';

interface Props {
  series: readonly Series[];
  bars: readonly Bar[];
  /** What is shown, for those who do not see it. */
  label: string;
  height?: number;
  /** Told the time range that was dragged over, or chosen by the keyboard. */
  onRange?: (from: string, to: string) => void;
  /** The time range that holds now. */
  range?: { from: string; to: string } | null;
  /** Where a series leads, from the legend. */
  linkOf?: (series: Series) => string | null;
}

const LEFT = 40;
const BOTTOM = 20;
const TOP = 6;

function useBrush(bars: readonly Bar[], onRange: Props['onRange']) {
  const [brush, setBrush] = useState<{ start: number; end: number } | null>(null);
  const choose = () => {
    const found = brush === null ? null : rangeOf(bars, brush.start, brush.end);
    if (found !== null) onRange?.(found.from, found.to);
    setBrush(null);
  };
  const pressed = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setBrush((old) => {
        const end = Math.max(0, Math.min(bars.length - 1, (old?.end ?? bars.length) + step));
        return { start: event.shiftKey && old !== null ? old.start : end, end };
      });
    } else if (event.key === 'Enter' && brush !== null) choose();
    else if (event.key === 'Escape') setBrush(null);
  };
  return { brush, setBrush, choose, pressed };
}

/** Bars over time, stacked by series. Dragging across, or arrows with Shift and then Enter, choose a time range. */
export function StackedBars({ series, bars, label, height = 180, onRange, range = null, linkOf }: Props) {
  const text = useText();
  const format = useFormat();
  const { ref, width: measured } = useElementSize();
  const { brush, setBrush, choose, pressed } = useBrush(bars, onRange);
  const width = measured || 640;
  const inner = Math.max(1, width - LEFT - 4);
  const step = inner / Math.max(1, bars.length);
  const top = ceilingOf(bars);
  const yOf = (value: number) => TOP + (height - BOTTOM - TOP) * (1 - value / top);
  const placeOf = (event: PointerEvent<SVGElement>) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left - LEFT;
    return Math.max(0, Math.min(bars.length - 1, Math.floor(x / step)));
  };
  const chosen = brush === null ? null : rangeOf(bars, brush.start, brush.end);
  const [over, setOver] = useState<number | null>(null);
  const held = range === null ? null : placesOf(bars, range);
  const shown = brush ?? held;
  const told = over ?? brush?.end ?? null;
  const hovered = told === null ? undefined : bars[told];
  return (
    <figure className={classes.figure} ref={ref}>
      <svg
        width="100%"
        height={height}
        role={onRange ? 'application' : 'img'}
        aria-label={onRange ? `${label}. ${text.shared.chart.brush}` : label}
        tabIndex={onRange ? 0 : undefined}
        className={onRange ? classes.brushable : undefined}
        onKeyDown={onRange ? pressed : undefined}
        onPointerDown={(event) => {
          if (!onRange) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          setBrush({ start: placeOf(event), end: placeOf(event) });
        }}
        onPointerMove={(event) => {
          const place = placeOf(event);
          if (place !== over) setOver(place);
          if (brush !== null && event.buttons === 1) setBrush({ ...brush, end: place });
        }}
        onPointerLeave={() => setOver(null)}
        onPointerUp={choose}
        onPointerCancel={() => setBrush(null)}
      >
        {[0, top / 2, top].map((value) => (
          <g key={value}>
            <line x1={LEFT} x2={width} y1={yOf(value)} y2={yOf(value)} className={classes.grid} />
            <text x={LEFT - 6} y={yOf(value) + 4} className={classes.tick} textAnchor="end">
              {format.compact(value)}
            </text>
          </g>
        ))}
        {bars.map((bar, at) => (
          <Stack key={bar.from} bar={bar} series={series} x={LEFT + at * step} width={step} yOf={yOf} />
        ))}
        {ticksOf(bars, Math.max(2, Math.floor(inner / 64))).map((at) => (
          <Tick key={at} bar={bars[at]} x={LEFT + at * step} y={height - 5} last={width} />
        ))}
        {shown !== null && (
          <rect
            className={brush === null ? classes.held : classes.brush}
            x={LEFT + Math.min(shown.start, shown.end) * step}
            y={TOP}
            width={(Math.abs(shown.end - shown.start) + 1) * step}
            height={height - BOTTOM - TOP}
          />
        )}
      </svg>
      <div className={classes.below}>
        <BarsLegend series={series} linkOf={linkOf} />
        <span className={classes.range} role="status">
          {chosen && text.shared.chart.range(format.dateTime(new Date(chosen.from)), format.dateTime(new Date(chosen.to)))}
        </span>
      </div>
      {hovered !== undefined && told !== null && <BarReadout bar={hovered} series={series} x={LEFT + (told + 0.5) * step} width={width} />}
      <Numbers series={series} bars={bars} label={label} />
    </figure>
  );
}

interface StackProps {
  bar: Bar;
  series: readonly Series[];
  x: number;
  width: number;
  yOf: (value: number) => number;
}

function Stack({ bar, series, x, width, yOf }: StackProps) {
  const wide = Math.max(1, width - (width > 5 ? 2 : 0.5));
  return (
    <g>
      <rect x={x} y={0} width={width} height={yOf(0)} fill="transparent" />
      {segmentsOf(bar.values).map(({ from, to }, at) => {
        const each = series[at];
        if (each === undefined || from === to) return null;
        return <rect key={each.id} x={x} y={yOf(to)} width={wide} height={yOf(from) - yOf(to)} fill={colourOf(each, at)} />;
      })}
    </g>
  );
}

const HALF_A_DAY = 43_200_000;

function Tick({ bar, x, y, last }: { bar: Bar | undefined; x: number; y: number; last: number }) {
  const format = useFormat();
  if (bar === undefined || x > last - 52) return null;
  const moment = new Date(Date.parse(bar.from) + (isDaily(bar) ? HALF_A_DAY : 0));
  return (
    <text x={x} y={y} className={tickIs(bar) === 'day' ? classes.day : classes.tick}>
      {tickIs(bar) === 'day' ? format.day(moment) : format.time(moment)}
    </text>
  );
}

/** The same numbers for those who listen. */
function Numbers({ series, bars, label }: Pick<Props, 'series' | 'bars' | 'label'>) {
  const { shared } = useText();
  const format = useFormat();
  return (
    <div className={classes.unseen}>
      <table>
        <caption>{label}</caption>
        <thead>
          <tr>
            <th scope="col">{shared.chart.time}</th>
            {series.map((each) => (
              <th key={each.id} scope="col">
                {visible(each.name)}
              </th>
            ))}
            <th scope="col">{shared.chart.total}</th>
          </tr>
        </thead>
        <tbody>
          {bars.map((bar) => (
            <tr key={bar.from}>
              <th scope="row">{format.dateTime(new Date(bar.from))}</th>
              {series.map((each, at) => (
                <td key={each.id}>{format.number(bar.values[at] ?? 0)}</td>
              ))}
              <td>{format.number(totalOf(bar))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
