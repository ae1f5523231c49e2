import { useFormat, useText } from '@/locales/language';

interface Props {
  values: readonly number[];
  width?: number;
  height?: number;
  /** What it is a trend of, for those who do not see it. */
  label?: string;
}

/** Bars without axes: the shape of the last hours. */
export function Sparkline({ values, width = 96, height = 22, label }: Props) {
  const text = useText();
  const format = useFormat();
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length);
  const told = text.shared.chart.trend(values.map((each) => format.number(each)).join(', '));
  return (
    <svg width={width} height={height} role="img" aria-label={label === undefined ? told : `${label}. ${told}`}>
      <line x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} stroke="var(--rd-line-strong)" strokeWidth={1} />
      <path d={barsOf(values, step, height, most)} fill="var(--rd-accent)" />
    </svg>
  );
}

/** One shape for all bars: lists have many of these. */
function barsOf(values: readonly number[], step: number, height: number, most: number): string {
  const wide = Math.max(1, step - 1);
  return values
    .map((value, at) => {
      const tall = Math.max(2, (value / most) * (height - 1));
      return value === 0 ? '' : `M${at * step} ${height}v${-tall}h${wide}v${tall}z`;
    })
    .join('');
}
