import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { told } from './client';
import type { Alert } from './types';

const alertKeys = {
  all: ['alerts'] as const,
  list: (asked: AlertsAsked) => ['alerts', 'list', asked] as const,
  one: (id: string) => ['alerts', 'one', id] as const,
};

interface AlertsAsked {
  /** Only what is so now. */
  firing: boolean;
  limit: number;
}

/** What is firing comes first, so a limit cuts off what is over. */
export function useAlerts(asked: AlertsAsked, live: number | false = false) {
  return useQuery({
    queryKey: alertKeys.list(asked),
    queryFn: ({ signal }) => told('get', '/api/v1/alerts', { query: asked, signal }),
    refetchInterval: live,
  });
}

export function useAlert(id: string, live: number | false = false) {
  return useQuery({
    queryKey: alertKeys.one(id),
    queryFn: ({ signal }) => told('get', '/api/v1/alerts/{alert_id}', { path: { alert_id: id }, signal }),
    refetchInterval: live,
  });
}

/** What people do about an alert. `wait` is for how long it is snoozed, as the API takes it: `4h`. */
export type AlertDeed = { name: 'acknowledge' | 'wake' | 'resolve' } | { name: 'snooze'; wait: string };

function carryOut(id: string, deed: AlertDeed, reason: string): Promise<Alert> {
  const path = { alert_id: id };
  switch (deed.name) {
    case 'acknowledge':
      return told('post', '/api/v1/alerts/{alert_id}/acknowledge', { path, body: { reason } });
    case 'snooze':
      return told('post', '/api/v1/alerts/{alert_id}/snooze', { path, body: { wait: deed.wait, reason } });
    case 'wake':
      return told('post', '/api/v1/alerts/{alert_id}/wake', { path, body: { reason } });
    case 'resolve':
      return told('post', '/api/v1/alerts/{alert_id}/resolve', { path, body: { reason } });
  }
}

export function useChangeAlert() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, deed, reason }: { id: string; deed: AlertDeed; reason: string }) => carryOut(id, deed, reason),
    onSuccess: () => client.invalidateQueries({ queryKey: alertKeys.all }),
  });
}
