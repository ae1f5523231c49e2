/** What is looked at first: what is going on, since when, in which groups, and what became of redrives. */
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { told } from './client';
import { listLetters } from './letters';
import type { components } from './schema';
import type { Verdict } from './types';

type Schemas = components['schemas'];
export type Situation = Schemas['Situation'];
export type Arrivals = Schemas['Arrivals'];
export type SeenGroup = Schemas['SeenGroup'];
export type Commonality = Schemas['Commonality'];
export type Comparison = Schemas['Comparison'];
export type GroupAttempts = Schemas['GroupAttempts'];
export type GroupRun = Schemas['GroupRun'];
export type GroupOrder = Schemas['GroupOrder'];

type Live = number | false;

/** So many hours until now, or from one moment to another. */
export type Span = { hours: number } | { from: string; to: string };

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const BY_HOUR_UP_TO = 168;

/**
 * Whole hours, or whole days where that is how the server counts arrivals, the one that has begun included: so that
 * what the chart shows and what is told beside it are the same letters.
 */
export function momentsOf(span: Span, now = Date.now()): { since: string; until?: string } {
  if ('from' in span) return { since: span.from, until: span.to };
  const step = span.hours <= BY_HOUR_UP_TO ? HOUR : DAY;
  return { since: new Date(Math.floor(now / step) * step - span.hours * HOUR + step).toISOString() };
}

export function useSituation(span: Span, live: Live = false) {
  return useQuery({
    queryKey: ['stats', 'situation', span],
    queryFn: ({ signal }) => told('get', '/api/v1/overview', { query: momentsOf(span), signal }),
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });
}

/** Letters per hour, or per day beyond a week, of the groups that have the most of them. */
export function useArrivals(span: Span, top: number, live: Live = false) {
  return useQuery({
    queryKey: ['stats', 'arrivals', span, top],
    queryFn: ({ signal }) => told('get', '/api/v1/overview/arrivals', { query: { ...momentsOf(span), top }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });
}

/** New ones first, then those that return, then those with the most letters. */
export function useSeenGroups(span: Span, limit: number, live: Live = false) {
  return useQuery({
    queryKey: ['groups', 'seen', span, limit],
    queryFn: ({ signal }) => told('get', '/api/v1/overview/groups', { query: { ...momentsOf(span), limit }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });
}

export interface GroupsWanted {
  queue?: string | undefined;
  owner?: string | undefined;
  verdict?: Verdict | undefined;
  text?: string | undefined;
  sort: GroupOrder;
}

/** Page by page; the most first, or the latest. */
export function useGroupPages(wanted: GroupsWanted, live: Live = false) {
  return useInfiniteQuery({
    queryKey: ['groups', 'pages', wanted],
    queryFn: ({ pageParam, signal }) =>
      told('get', '/api/v1/groups', { query: { ...wanted, after: pageParam, limit: 50 }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });
}

const of = (id: string, what: string) => ['groups', 'one', id, what] as const;

/** What its newest letters have in common and others of the queue have not. */
export function useCommon(id: string) {
  return useQuery({
    queryKey: of(id, 'common'),
    queryFn: ({ signal }) => told('get', '/api/v1/groups/{group_id}/common', { path: { group_id: id }, signal }),
    staleTime: 60_000,
  });
}

/** Uncounted: the group tells how many there are. */
export function useNewestLetters(group: string, limit: number, live: Live = false) {
  return useQuery({
    queryKey: ['letters', 'newest', group, limit],
    queryFn: () => listLetters({ group, limit }),
    refetchInterval: live,
  });
}

export function useGroupAttempts(id: string) {
  return useQuery({
    queryKey: of(id, 'attempts'),
    queryFn: ({ signal }) => told('get', '/api/v1/groups/{group_id}/attempts', { path: { group_id: id }, signal }),
    staleTime: 30_000,
  });
}

export function useGroupRedrives(id: string, live: Live = false) {
  return useQuery({
    queryKey: of(id, 'redrives'),
    queryFn: ({ signal }) => told('get', '/api/v1/groups/{group_id}/redrives', { path: { group_id: id }, signal }),
    refetchInterval: live,
  });
}
