import { useMutation, useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { onSignedOut, told, urlOf } from './client';
import { ApiProblem } from './problem';
import type { Myself, Permission } from './types';

export const sessionKeys = { me: ['session'] as const, about: ['about'] as const };

/** Whoever is signed in; null: nobody. */
export function useMe() {
  return useQuery({
    queryKey: sessionKeys.me,
    queryFn: async ({ signal }): Promise<Myself | null> => {
      try {
        return await told('get', '/api/v1/session', { signal });
      } catch (problem) {
        if (problem instanceof ApiProblem && problem.status === 401) return null;
        throw problem;
      }
    },
    staleTime: 60_000,
  });
}

/** Once, around everything: a request that finds the session ended makes the page ask for a new one. */
export function useSessionEnd(): void {
  const client = useQueryClient();
  useEffect(() => onSignedOut(() => client.setQueryData(sessionKeys.me, null)), [client]);
}

export interface Credentials {
  user?: string;
  password?: string;
  /** Of the first start. */
  code?: string;
}

export function useSignIn() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (credentials: Credentials) => told('post', '/api/v1/session', { body: credentials }),
    onSuccess: async () => {
      forget(client);
      await client.invalidateQueries({ queryKey: sessionKeys.me });
    },
    gcTime: 0,
  });
}

/** What was seen by whoever was here before. */
function forget(client: QueryClient): void {
  client.removeQueries({ predicate: (query) => query.queryKey[0] !== 'session' });
  client.getMutationCache().clear();
}

/** Everything that was seen is forgotten with the session. */
export function useSignOut() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => told('delete', '/api/v1/session'),
    onSuccess: () => {
      client.setQueryData(sessionKeys.me, null);
      forget(client);
    },
  });
}

/** Where the identity provider's page is reached; `back` is a path of ours. */
export const providerUrl = (back: string) => urlOf('/api/v1/session/oidc', {}, { return_to: back });

/** What this server is: version, environment, whether it only shows. */
export function useAbout() {
  return useQuery({
    queryKey: sessionKeys.about,
    queryFn: ({ signal }) => told('get', '/api/v1/about', { signal }),
    staleTime: 300_000,
  });
}

function fits(queue: string, pattern: string): boolean {
  return pattern.endsWith('*') ? queue.startsWith(pattern.slice(0, -1)) : queue === pattern;
}

/** Whether they may do that: in this queue, or in any at all if none is named. */
export function may(me: Myself, permission: Permission, queue?: string): boolean {
  const where = me.permissions[permission];
  if (where === undefined) return false;
  return queue === undefined || where.some((pattern) => fits(queue, pattern));
}
