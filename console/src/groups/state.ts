import type { FailureGroup, Verdict } from '@/api/types';

export type State = 'open' | 'underWay' | 'settled';

/** Open while a letter waits for a person, under way while one is being sent back, settled otherwise. */
export function stateOf({ by_status: count }: Pick<FailureGroup, 'by_status'>): State {
  if ((count.PENDING ?? 0) + (count.QUARANTINED ?? 0) > 0) return 'open';
  return (count.REDRIVING ?? 0) + (count.REDRIVEN ?? 0) > 0 ? 'underWay' : 'settled';
}

export const VERDICTS: readonly Verdict[] = ['replayable', 'requires fix', 'do not replay', 'investigate'];

export const isVerdict = (text: string): text is Verdict => (VERDICTS as readonly string[]).includes(text);

/** Only what a browser opens as a page: never `javascript:` or `data:`. */
export function webAddress(text: string): string | null {
  const given = text.trim();
  if (!/^https?:\/\//i.test(given)) return null;
  try {
    const { protocol, href } = new URL(given);
    return protocol === 'https:' || protocol === 'http:' ? href : null;
  } catch {
    return null;
  }
}
