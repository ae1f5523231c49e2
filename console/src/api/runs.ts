import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { told } from './client';
import { hasEnded, watchRun } from './events';
import { lettersChanged } from './letters';
import type { Happening, RunAsked, RunJson } from './types';

export const runKeys = {
  all: ['runs'] as const,
  list: (active: boolean) => ['runs', 'list', active] as const,
  one: (id: string) => ['runs', 'one', id] as const,
};

export interface RunDetail {
  run: RunJson;
  history: Happening[];
}

/** The newest first, page by page; all of them, or those that have not ended. */
export function useRuns(active: boolean, live: number | false = false) {
  return useInfiniteQuery({
    queryKey: runKeys.list(active),
    queryFn: ({ pageParam, signal }) => told('get', '/api/v1/runs', { query: { active, limit: 50, after: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    // Every page that was loaded is asked for again: the more there are, the more rarely.
    refetchInterval: ({ state }) => live && live * (state.data?.pages.length ?? 1),
  });
}

export function useRun(id: string) {
  return useQuery({
    queryKey: runKeys.one(id),
    queryFn: ({ signal }): Promise<RunDetail> => told('get', '/api/v1/runs/{run_id}', { path: { run_id: id }, signal }),
  });
}

/** Keeps `useRun(id)` up to date by server-sent events while the run goes on. Tells whether the stream is open. */
export function useRunNews(id: string, status: string | undefined): boolean {
  const client = useQueryClient();
  const [live, setLive] = useState(false);
  const watched = status !== undefined && !hasEnded(status);
  useEffect(() => {
    if (!watched) return;
    return watchRun(
      id,
      (news) => {
        client.setQueryData<RunDetail>(runKeys.one(id), (old) => old && { ...old, run: { ...old.run, ...news } });
        if (hasEnded(news.status)) void client.invalidateQueries({ queryKey: runKeys.all });
      },
      setLive,
    );
  }, [id, watched, client]);
  return live && watched;
}

/** What became of each letter, page by page. */
export function useOutcomes(id: string, limit = 100) {
  return useInfiniteQuery({
    queryKey: [...runKeys.one(id), 'letters', limit],
    queryFn: ({ pageParam, signal }) =>
      told('get', '/api/v1/runs/{run_id}/letters', { path: { run_id: id }, query: { after: pageParam, limit }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
  });
}

export function useUnsent(id: string, limit = 100) {
  return useQuery({
    queryKey: [...runKeys.one(id), 'unsent', limit],
    queryFn: ({ signal }) => told('get', '/api/v1/runs/{run_id}/unsent', { path: { run_id: id }, query: { limit }, signal }),
  });
}

/** What a run is where nobody says otherwise. */
export function useUsualRun() {
  return useQuery({
    queryKey: ['run-plans', 'usual'],
    queryFn: ({ signal }) => told('get', '/api/v1/run-plans/usual', { signal }),
    staleTime: 60_000,
  });
}

/** What the run would do now and what speaks against it; asked anew whenever `asked` changes. */
export function usePreview(asked: RunAsked, enabled = true) {
  return useQuery({
    queryKey: ['run-plans', 'preview', asked],
    queryFn: ({ signal }) => told('post', '/api/v1/runs/preview', { body: asked, signal }),
    staleTime: 0,
    enabled,
  });
}

/** How many letters the run would send, and the approval that it would need. */
export function usePlan(asked: RunAsked, enabled = true) {
  return useQuery({
    queryKey: ['run-plans', 'plan', asked],
    queryFn: ({ signal }) => told('post', '/api/v1/run-plans', { body: asked, signal }),
    staleTime: 0,
    enabled,
  });
}

/** What an edit and a schema say to these letters; changes nothing. */
export function useEditSamples(run: RunAsked, ids: string[], enabled = true) {
  return useQuery({
    queryKey: ['run-plans', 'samples', run, ids],
    queryFn: ({ signal }) => told('post', '/api/v1/run-plans/samples', { body: { run, ids }, signal }),
    enabled: enabled && ids.length > 0,
  });
}

/** The run that was made by that key, if there is one: after an answer that never came. */
export const runMadeBy = (key: string, asked: RunAsked) =>
  told('post', '/api/v1/run-plans/made', { body: asked, idempotencyKey: key });

/** A key that makes asking again harmless: make one when a dialog opens, and keep it until it closes. */
export function newKey(): string {
  return `console-${crypto.getRandomValues(new Uint32Array(4)).join('-')}`;
}

export function useMakeRun() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ asked, key }: { asked: RunAsked; key: string }) =>
      told('post', '/api/v1/runs', { body: asked, idempotencyKey: key }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: runKeys.all });
      await lettersChanged(client);
    },
  });
}

const DECISIONS = {
  pause: (id: string, reason: string) => told('post', '/api/v1/runs/{run_id}/pause', of(id, reason)),
  resume: (id: string, reason: string) => told('post', '/api/v1/runs/{run_id}/resume', of(id, reason)),
  cancel: (id: string, reason: string) => told('post', '/api/v1/runs/{run_id}/cancel', of(id, reason)),
  approve: (id: string, reason: string) => told('post', '/api/v1/runs/{run_id}/approve', of(id, reason)),
  reject: (id: string, reason: string) => told('post', '/api/v1/runs/{run_id}/reject', of(id, reason)),
};
export type Decision = keyof typeof DECISIONS;

function of(id: string, reason: string) {
  return { path: { run_id: id }, body: { reason } };
}

export function useDecideRun(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ decision, reason }: { decision: Decision; reason: string }) => DECISIONS[decision](id, reason),
    onSuccess: () => client.invalidateQueries({ queryKey: runKeys.all }),
  });
}

export interface Settling {
  how: 'sent' | 'send again';
  reason?: string;
  rate?: number | null;
  at_most?: number;
}

/** Decides about letters in doubt, some at a time: ask again until none is left. */
export function useSettleRun(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (asked: Settling) => told('post', '/api/v1/runs/{run_id}/settle', { path: { run_id: id }, body: asked }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: runKeys.all });
      await lettersChanged(client);
    },
  });
}

/** Runs of others that wait for an approval which whoever is signed in could give. */
export function useApprovals(limit = 50, live: number | false = false) {
  return useQuery({
    queryKey: [...runKeys.all, 'approvals', limit],
    queryFn: ({ signal }) => told('get', '/api/v1/approvals', { query: { limit }, signal }),
    refetchInterval: live,
  });
}
