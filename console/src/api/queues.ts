import { useQuery } from '@tanstack/react-query';
import { told } from './client';

export const queueKeys = {
  all: ['queues'] as const,
  list: (names: string[]) => ['queues', 'list', names] as const,
};

/** All queues, or these and what belongs to them. */
export function useQueues(names: string[] = [], live: number | false = false) {
  return useQuery({
    queryKey: queueKeys.list(names),
    queryFn: ({ signal }) => told('get', '/api/v1/queues', { query: { queue: names }, signal }),
    refetchInterval: live,
  });
}
