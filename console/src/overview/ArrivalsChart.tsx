import { Button, SegmentedControl } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { useMemo } from 'react';
import type { Arrivals } from '@/api/insights';
import { shortTitle } from '@/groups/GroupTitle';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import type { Bar, Series } from '@/shared/bars';
import { DataState } from '@/shared/DataState';
import { exactly } from '@/shared/Instant';
import { StackedBars } from '@/shared/StackedBars';
import { WINDOWS, type Range, type Window } from './span';
import classes from './ArrivalsChart.module.css';

type Query = Parameters<typeof DataState<Arrivals>>[0]['query'];

interface Props {
  query: Query;
  window: Window;
  onWindow: (window: Window) => void;
  range: Range | null;
  onRange: (range: Range | null) => void;
}

const REST = 'rest';

export function chartOf(arrivals: Arrivals, others: string): { series: Series[]; bars: Bar[] } {
  const series: Series[] = arrivals.groups.map(({ group_id, title }) => ({ id: group_id, name: shortTitle(title) }));
  const withRest = arrivals.others.some((each) => each > 0);
  if (withRest) series.push({ id: REST, name: others });
  const step = arrivals.step_hours * 3_600_000;
  const bars = arrivals.starts.map((from, at) => ({
    from,
    to: new Date(Date.parse(from) + step).toISOString(),
    values: [...arrivals.groups.map(({ counts }) => counts[at] ?? 0), ...(withRest ? [arrivals.others[at] ?? 0] : [])],
  }));
  return { series, bars };
}

/** When it arrived, and of which cause. A range that is dragged over narrows the page. */
export function ArrivalsChart({ query, window, onWindow, range, onRange }: Props) {
  const { overview } = useText();
  const { chart: text, span } = overview;
  const daily = (query.data?.step_hours ?? 1) > 1;
  return (
    <section className={`rd-panel ${classes.panel ?? ''}`}>
      <header className={classes.head}>
        <h2 className={classes.title}>{daily ? text.byDay : text.byHour}</h2>
        <Total arrivals={query.data} />
        {range !== null && <ChosenRange range={range} onClear={() => onRange(null)} />}
        {range === null && query.data?.total.some((each) => each > 0) === true && <span className={classes.hint}>{text.hint}</span>}
        <SegmentedControl
          className={classes.windows ?? ''}
          size="xs"
          value={window}
          onChange={(next) => onWindow(next)}
          aria-label={span.label}
          data={WINDOWS.map((value) => ({ value, label: span[value] }))}
        />
      </header>
      <DataState query={query} lines={5}>
        {(arrivals) => <Chart arrivals={arrivals} range={range} onRange={onRange} />}
      </DataState>
    </section>
  );
}

function Total({ arrivals }: { arrivals: Arrivals | undefined }) {
  const { chart } = useText().overview;
  if (arrivals === undefined) return null;
  return <span className="rd-dim">{chart.total(arrivals.total.reduce((sum, each) => sum + each, 0))}</span>;
}

interface ChartProps {
  arrivals: Arrivals;
  range: Range | null;
  onRange: (range: Range | null) => void;
}

function Chart({ arrivals, range, onRange }: ChartProps) {
  const { overview, shared } = useText();
  const { series, bars } = useMemo(() => chartOf(arrivals, shared.chart.rest), [arrivals, shared]);
  if (arrivals.total.every((each) => each === 0)) return <p className={classes.none}>{overview.chart.none}</p>;
  return (
    <StackedBars
      series={series}
      bars={bars}
      label={overview.chart.label}
      height={200}
      range={range}
      onRange={(from, to) => onRange({ from, to })}
      linkOf={({ id }) => (id === REST ? paths.groups : paths.group(id))}
    />
  );
}

export function ChosenRange({ range, onClear }: { range: Range; onClear: () => void }) {
  const { span } = useText().overview;
  const format = useFormat();
  const brief = (moment: Date) => `${format.day(moment)}, ${format.time(moment)}`;
  const [from, to] = [new Date(range.from), new Date(range.to)];
  return (
    <Button
      size="compact-xs"
      variant="light"
      rightSection={<IconX size={12} aria-hidden />}
      title={`${exactly(from)}\n${exactly(to)}\n${span.clear}`}
      aria-label={`${span.chosen(brief(from), brief(to))}. ${span.clear}`}
      onClick={onClear}
    >
      {span.chosen(brief(from), brief(to))}
    </Button>
  );
}
