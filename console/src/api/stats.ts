import { useQuery } from '@tanstack/react-query';
import { told } from './client';
import type { Selection } from './types';

export const statKeys = {
  all: ['stats'] as const,
  of: (what: string, ...more: unknown[]) => ['stats', what, ...more] as const,
};

type Live = number | false;

export function useStatistics(olderThan?: string, live: Live = false) {
  return useQuery({
    queryKey: statKeys.of('statistics', olderThan),
    queryFn: ({ signal }) => told('get', '/api/v1/stats', { query: { older_than: olderThan }, signal }),
    refetchInterval: live,
  });
}

export function usePending(limit = 50) {
  return useQuery({
    queryKey: statKeys.of('pending', limit),
    queryFn: ({ signal }) => told('get', '/api/v1/stats/pending', { query: { limit }, signal }),
  });
}

export function useTopErrors(limit = 10, live: Live = false) {
  return useQuery({
    queryKey: statKeys.of('top-errors', limit),
    queryFn: ({ signal }) => told('get', '/api/v1/stats/top-errors', { query: { limit }, signal }),
    refetchInterval: live,
  });
}

/** Letters per hour; `within` is written like 24h or 7d. */
export function useHourlyRate(within = '24h', live: Live = false) {
  return useQuery({
    queryKey: statKeys.of('rate', within),
    queryFn: ({ signal }) => told('get', '/api/v1/stats/rate', { query: { within }, signal }),
    refetchInterval: live,
  });
}

export function useEventTypes() {
  return useQuery({
    queryKey: statKeys.of('event-types'),
    queryFn: ({ signal }) => told('get', '/api/v1/stats/event-types', { signal }),
  });
}

export function useResolutionTime(live: Live = false) {
  return useQuery({
    queryKey: statKeys.of('resolution'),
    queryFn: ({ signal }) => told('get', '/api/v1/stats/resolution', { signal }),
    refetchInterval: live,
  });
}

/** Letters that a filter cannot find yet. */
export function useSearchBacklog() {
  return useQuery({
    queryKey: statKeys.of('search-backlog'),
    queryFn: ({ signal }) => told('get', '/api/v1/stats/search-backlog', { signal }),
  });
}

/** How many letters match, by the URL: not for filters that may be personal. `useMatching` counts those. */
export function useCount(selection: Selection, atMost?: number, live: Live = false) {
  return useQuery({
    queryKey: statKeys.of('count', selection, atMost),
    queryFn: ({ signal }) => told('get', '/api/v1/stats/count', { query: { ...selection, at_most: atMost }, signal }),
    refetchInterval: live,
  });
}

/** What a field is known to be, for completion and facets. */
export const valuesOf = (field: string, beginning: string, limit = 20, signal?: AbortSignal) =>
  told('get', '/api/v1/stats/values/{field}', { path: { field }, query: { beginning, limit }, signal });

export function useValues(field: string, beginning = '', limit = 50) {
  return useQuery({
    queryKey: statKeys.of('values', field, beginning, limit),
    queryFn: ({ signal }) => valuesOf(field, beginning, limit, signal),
    staleTime: 30_000,
  });
}
