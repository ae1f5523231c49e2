import type { Span } from '@/api/insights';
import { useAddress } from '@/shared/address';

export const WINDOWS = ['24h', '7d', '30d'] as const;
export type Window = (typeof WINDOWS)[number];
const HOURS: Record<Window, number> = { '24h': 24, '7d': 168, '30d': 720 };

export interface Range {
  from: string;
  to: string;
}

const isWindow = (text: string): text is Window => (WINDOWS as readonly string[]).includes(text);

/** What was written by hand may be anything: a range is two moments in their order, or none. */
export function rangeIn(from: string, to: string): Range | null {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  return start < end ? { from: new Date(start).toISOString(), to: new Date(end).toISOString() } : null;
}

/** The time that the page is about, as the address has it: what the chart shows, and the range chosen in it. */
export function useTimes() {
  const address = useAddress();
  const asked = address.get('within');
  const window: Window = isWindow(asked) ? asked : '24h';
  const range = rangeIn(address.get('from'), address.get('to'));
  const whole: Span = { hours: HOURS[window] };
  const span: Span = range ?? whole;
  return {
    window,
    range,
    whole,
    span,
    setWindow: (next: Window) => address.set({ within: next === '24h' ? null : next, from: null, to: null }),
    setRange: (next: Range | null) => address.set({ from: next?.from, to: next?.to }),
  };
}
