const SECOND = 1000;
const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400 * SECOND],
  ['hour', 3_600 * SECOND],
  ['minute', 60 * SECOND],
  ['second', SECOND],
];
const LONG_AGO = 30 * 86_400 * SECOND;

export interface Formats {
  number: (value: number | bigint) => string;
  /** 12K */
  compact: (value: number) => string;
  percent: (share: number) => string;
  /** "4 minutes ago", and a date for what is long ago. */
  relative: (moment: Date, now: number) => string;
  /** As short as it can be told: "4m ago". */
  brief: (moment: Date, now: number) => string;
  /** In the viewer's zone, to the second. */
  dateTime: (moment: Date) => string;
  time: (moment: Date) => string;
  date: (moment: Date) => string;
  /** A day of this year, as short as it can be told. */
  day: (moment: Date) => string;
  /** "2h 5m" */
  duration: (seconds: number) => string;
}

const made = new Map<string, Formats>();

/** The language as it is spoken where the viewer is, which decides how moments are written: 19:44 or 7:44 PM. */
export function regionOf(language: string, preferred: readonly string[] = navigator.languages): string {
  return preferred.find((each) => each === language || each.startsWith(`${language}-`)) ?? language;
}

export function formatsOf(language: string, region = language): Formats {
  const found = made.get(`${language} ${region}`) ?? makeFormats(language, region);
  made.set(`${language} ${region}`, found);
  return found;
}

function makeFormats(language: string, region: string): Formats {
  const number = new Intl.NumberFormat(language);
  const compact = new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 });
  const percent = new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 1 });
  const dateTime = new Intl.DateTimeFormat(region, { dateStyle: 'medium', timeStyle: 'medium' });
  const date = new Intl.DateTimeFormat(region, { dateStyle: 'medium' });
  const day = new Intl.DateTimeFormat(region, { month: 'short', day: 'numeric' });
  const time = new Intl.DateTimeFormat(region, { hour: '2-digit', minute: '2-digit' });
  const relative = relativeIn(language, 'long', date);
  return {
    number: (value) => number.format(value),
    compact: (value) => compact.format(value),
    percent: (share) => percent.format(share),
    relative,
    brief: relativeIn(language, 'narrow', date),
    dateTime: (moment) => dateTime.format(moment),
    time: (moment) => time.format(moment),
    date: (moment) => date.format(moment),
    day: (moment) => day.format(moment),
    duration: (seconds) => durationIn(language, seconds),
  };
}

function relativeIn(language: string, style: 'long' | 'narrow', date: Intl.DateTimeFormat) {
  const words = new Intl.RelativeTimeFormat(language, { numeric: 'always', style });
  return (moment: Date, now: number): string => {
    const passed = moment.getTime() - now;
    if (Math.abs(passed) > LONG_AGO) return date.format(moment);
    const [unit, size] = STEPS.find(([, each]) => Math.abs(passed) >= each) ?? (['second', SECOND] as const);
    return words.format(Math.trunc(passed / size), unit);
  };
}

const UNITS: readonly [string, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

function durationIn(language: string, seconds: number): string {
  const write = (value: number, unit: string, digits = 0) =>
    new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'narrow', maximumFractionDigits: digits }).format(value);
  const length = Math.abs(seconds);
  const sign = seconds < 0 ? '-' : '';
  if (length < 1) return sign + write(length * 1000, 'millisecond');
  if (length < 10) return sign + write(length, 'second', 1);
  const first = UNITS.findIndex(([, size]) => Math.round(length) >= size);
  const parts: string[] = [];
  let rest = Math.round(length);
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const value = Math.floor(rest / size);
    rest -= value * size;
    if (value > 0) parts.push(write(value, unit));
  }
  return sign + parts.join(' ');
}
