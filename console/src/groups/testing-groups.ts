import type { FailureGroup } from '@/api/types';

/** A group for tests that need one and not its details. */
export function aGroup(id: string, more: Partial<FailureGroup> = {}): FailureGroup {
  return {
    id,
    title: `shop.errors.NoCustomer: order <number> of ${id} has no customer`,
    queue: 'orders',
    handler: 'charge',
    first_seen: new Date(Date.now() - 3_900_000).toISOString(),
    last_seen: new Date().toISOString(),
    total: 12,
    pending: 7,
    example: null,
    by_status: { PENDING: 7, RESOLVED: 5 },
    trend: Array.from({ length: 24 }, (_, at) => at),
    owner: null,
    verdict: null,
    note: null,
    runbook: null,
    merged: [],
    redrives: {},
    history: [],
    ...more,
  };
}
