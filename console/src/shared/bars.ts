export interface Series {
  id: string;
  name: string;
}

export interface Bar {
  /** ISO moments: from, and up to but not including. */
  from: string;
  to: string;
  /** One number for each series, in their order. */
  values: readonly number[];
}

const COLOURS = 7;

/** Colours go by place; what stands for all others is grey. */
export function colourOf(series: Series, at: number): string {
  return series.id === 'rest' ? 'var(--rd-series-rest)' : `var(--rd-series-${at % COLOURS})`;
}

export const totalOf = (bar: Bar): number => bar.values.reduce((sum, each) => sum + each, 0);

/** A round number at or above the highest bar, that can be halved for a line between. */
export function ceilingOf(bars: readonly Bar[]): number {
  const most = Math.max(2, ...bars.map(totalOf));
  const power = 10 ** Math.floor(Math.log10(most));
  const steps = power === 1 ? [2, 4, 6, 8, 10] : [1, 2, 3, 4, 6, 8, 10];
  const step = steps.find((each) => each * power >= most) ?? 10;
  return Math.max(2, step * power);
}

/** What lies between two places, whichever comes first. */
export function rangeOf(bars: readonly Bar[], one: number, other: number): { from: string; to: string } | null {
  const first = bars[Math.max(0, Math.min(one, other))];
  const last = bars[Math.min(bars.length - 1, Math.max(one, other))];
  return first === undefined || last === undefined ? null : { from: first.from, to: last.to };
}

/** Where each value of a stack begins and ends. */
export function segmentsOf(values: readonly number[]): { from: number; to: number }[] {
  const segments: { from: number; to: number }[] = [];
  for (const value of values) {
    const from = segments.at(-1)?.to ?? 0;
    segments.push({ from, to: from + value });
  }
  return segments;
}

/** Bars of a whole day or longer. */
const DAY = 86_400_000;
export const isDaily = (bar: Bar): boolean => Date.parse(bar.to) - Date.parse(bar.from) >= DAY;

/** The places that are labelled: round hours of the viewer's day, or days where there are many of them. */
export function ticksOf(bars: readonly Bar[], most: number): number[] {
  const first = bars[0];
  if (first === undefined) return [];
  const all = [...bars.keys()];
  if (isDaily(first)) return all.filter((at) => at % Math.ceil(bars.length / most) === 0);
  const hourOf = (at: number) => new Date(bars[at]?.from ?? 0).getHours();
  const step = [1, 2, 3, 4, 6, 12].find((each) => all.filter((at) => hourOf(at) % each === 0).length <= most);
  if (step !== undefined) return all.filter((at) => hourOf(at) % step === 0);
  const midnights = all.filter((at) => hourOf(at) === 0);
  const every = Math.max(1, Math.ceil(midnights.length / most));
  return midnights.filter((_, at) => at % every === 0);
}

/** What a labelled place says: its hour, and the day where that begins. Days are those of UTC, told by their noon. */
export function tickIs(bar: Bar): 'day' | 'hour' {
  return isDaily(bar) || new Date(bar.from).getHours() === 0 ? 'day' : 'hour';
}

/** The first and the last place of a range; null: nothing of it is there. */
export function placesOf(bars: readonly Bar[], range: { from: string; to: string }): { start: number; end: number } | null {
  const [from, to] = [Date.parse(range.from), Date.parse(range.to)];
  const inside = [...bars.keys()].filter((at) => Date.parse(bars[at]?.to ?? '') > from && Date.parse(bars[at]?.from ?? '') < to);
  const [start, end] = [inside[0], inside.at(-1)];
  return start === undefined || end === undefined ? null : { start, end };
}
