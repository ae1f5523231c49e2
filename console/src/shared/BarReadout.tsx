import { useFormat, useText } from '@/locales/language';
import { colourOf, isDaily, totalOf, type Bar, type Series } from './bars';
import { Untrusted } from './Untrusted';
import classes from './BarReadout.module.css';

interface Props {
  bar: Bar;
  series: readonly Series[];
  /** Where the bar's middle is, and how wide the chart. */
  x: number;
  width: number;
}

/** What the bar under the pointer stands for. Hidden from those who listen: the table tells them the same. */
export function BarReadout({ bar, series, x, width }: Props) {
  const { shared } = useText();
  const format = useFormat();
  const from = new Date(bar.from);
  const when = isDaily(bar) ? format.dateTime(from) : `${format.day(from)} ${format.time(from)} – ${format.time(new Date(bar.to))}`;
  const lines = series.map((each, at) => ({ each, at, value: bar.values[at] ?? 0 })).filter(({ value }) => value > 0);
  const side = x > width / 2 ? { right: width - x + 12 } : { left: x + 12 };
  return (
    <div className={classes.readout} style={side} aria-hidden>
      <div className={classes.when}>{when}</div>
      {series.length > 1 &&
        lines.map(({ each, at, value }) => (
          <div key={each.id} className={classes.line}>
            <svg width={8} height={8}>
              <rect width={8} height={8} rx={2} fill={colourOf(each, at)} />
            </svg>
            <span className={classes.name}>
              <Untrusted text={each.name} most={60} />
            </span>
            <span className={classes.value}>{format.number(value)}</span>
          </div>
        ))}
      <div className={classes.line}>
        <span className={classes.name}>{shared.chart.total}</span>
        <span className={classes.value}>{format.number(totalOf(bar))}</span>
      </div>
    </div>
  );
}
