import type { GroupOrder, GroupsWanted } from '@/api/insights';
import { useAddress } from '@/shared/address';
import { isVerdict } from './state';

export const ORDERS: readonly GroupOrder[] = ['pending', 'total', 'last_seen', 'first_seen'];
const USUAL: GroupOrder = 'pending';

const isOrder = (text: string): text is GroupOrder => (ORDERS as readonly string[]).includes(text);

/** Which groups, and in which order, as the address has it. */
export function useWanted() {
  const address = useAddress();
  const sort = address.get('sort');
  const verdict = address.get('verdict');
  const wanted: GroupsWanted = {
    text: address.get('text') || undefined,
    queue: address.get('queue') || undefined,
    owner: address.get('owner') || undefined,
    verdict: isVerdict(verdict) ? verdict : undefined,
    sort: isOrder(sort) ? sort : USUAL,
  };
  return {
    wanted,
    narrowed: [wanted.text, wanted.queue, wanted.owner, wanted.verdict].some((each) => each !== undefined),
    set: (changes: Partial<Record<'text' | 'queue' | 'owner' | 'verdict', string>>, replace = false) => address.set(changes, { replace }),
    setSort: (next: GroupOrder) => address.set({ sort: next === USUAL ? null : next }),
    clear: () => address.set({ text: null, queue: null, owner: null, verdict: null }),
  };
}

export type Wanted = ReturnType<typeof useWanted>;
