import { useMemo } from 'react';
import { useText } from '@/locales/language';
import type { Bar } from '@/shared/bars';
import { StackedBars } from '@/shared/StackedBars';
import { Section } from '@/shared/Section';

const HOUR = 3_600_000;

/** The last value is of the hour that had begun when it was asked. */
export function barsOf(trend: readonly number[], askedAt: number): Bar[] {
  const last = Math.floor(askedAt / HOUR) * HOUR;
  return trend.map((value, at) => {
    const from = last - (trend.length - 1 - at) * HOUR;
    return { from: new Date(from).toISOString(), to: new Date(from + HOUR).toISOString(), values: [value] };
  });
}

export function Trend({ trend, askedAt }: { trend: readonly number[]; askedAt: number }) {
  const { groups } = useText();
  const bars = useMemo(() => barsOf(trend, askedAt), [trend, askedAt]);
  return (
    <Section title={groups.trend.title} aside={groups.trend.when}>
      <StackedBars series={[{ id: 'letters', name: groups.letters.title }]} bars={bars} label={groups.trend.label} height={120} />
    </Section>
  );
}
