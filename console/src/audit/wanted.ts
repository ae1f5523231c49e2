import { useMemo } from 'react';
import type { LedgerAsked } from '@/api/audit';
import { useAddress } from '@/shared/address';

const HOUR = 3_600_000;
/** As the command line writes them too. */
export const SPANS = { '1h': HOUR, '24h': 24 * HOUR, '7d': 168 * HOUR, '30d': 720 * HOUR };
export type Span = keyof typeof SPANS;
export type Time = Span | 'any' | 'range';

const isSpan = (text: string): text is Span => Object.hasOwn(SPANS, text);

/** A moment as the address has it; empty if it is none. */
function moment(text: string): string {
  const read = new Date(text);
  return Number.isNaN(read.getTime()) ? '' : read.toISOString();
}

function timeOf(text: string): Time {
  if (isSpan(text)) return text;
  return text === 'range' ? 'range' : 'any';
}

/** So long before the minute that it was asked in: the same question a second later is the same. */
const back = (span: Span) => new Date(Math.floor(Date.now() / 60_000) * 60_000 - SPANS[span]).toISOString();

/** Which rows, as the address has it. */
export function useWanted() {
  const { get, set } = useAddress();
  const [who, what, denied] = [get('who'), get('what'), get('denied') === 'yes'];
  const time = timeOf(get('time'));
  const from = moment(get('from'));
  const to = moment(get('to'));
  const since = useMemo(() => (time === 'range' ? from : time === 'any' ? '' : back(time)), [time, from]);
  const until = time === 'range' ? to : '';
  const asked: LedgerAsked = {
    ...(who === '' ? {} : { who }),
    ...(what === '' ? {} : { what }),
    ...(since === '' ? {} : { since }),
    ...(until === '' ? {} : { until }),
    ...(denied ? { denied } : {}),
  };
  return {
    asked,
    who,
    what,
    denied,
    time,
    from,
    to,
    narrowed: Object.keys(asked).length > 0 || time === 'range',
    set,
    clear: () => set({ who: null, what: null, denied: null, time: null, from: null, to: null }),
  };
}

export type Wanted = ReturnType<typeof useWanted>;
