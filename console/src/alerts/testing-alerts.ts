import type { Alert } from '@/api/types';

export const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000 - 5_000).toISOString();

/** An alert for tests that need one and not its details. */
export function anAlert(id: string, more: Partial<Alert> = {}): Alert {
  return {
    id,
    key: `new_group/${id}`,
    rule: 'new_group',
    severity: 'warning',
    status: 'FIRING',
    title: `New failure: NoCustomer of ${id}`,
    counts: { letters: 1204 },
    queue: 'orders',
    group_id: id,
    path: `/groups/${id}`,
    since: minutesAgo(4),
    changed_at: minutesAgo(4),
    ended_at: null,
    told_at: null,
    acknowledged_by: null,
    acknowledged_at: null,
    snoozed_until: null,
    snoozed_by: null,
    held: false,
    ...more,
  };
}

export const anEnded = (id: string, more: Partial<Alert> = {}): Alert =>
  anAlert(id, { status: 'RESOLVED', since: minutesAgo(70), ended_at: minutesAgo(10), ...more });
