import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { told } from './client';

export interface LedgerAsked {
  who?: string | undefined;
  what?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  denied?: boolean;
}

export const auditKeys = {
  all: ['audit'] as const,
  list: (asked: LedgerAsked, limit: number) => ['audit', 'list', asked, limit] as const,
};

/** Newest first, page by page. */
export function useLedger(asked: LedgerAsked = {}, limit = 50, live: number | false = false) {
  return useInfiniteQuery({
    queryKey: auditKeys.list(asked, limit),
    queryFn: ({ pageParam, signal }) =>
      told('get', '/api/v1/audit', { query: { ...asked, limit, before: pageParam }, signal }),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });
}
