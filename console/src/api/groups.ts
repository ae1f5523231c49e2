import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { told } from './client';
import { lettersChanged } from './letters';
import type { FailureGroup, GroupNotes } from './types';

export const groupKeys = {
  all: ['groups'] as const,
  one: (id: string) => ['groups', 'one', id] as const,
};

export function useGroup(id: string, live: number | false = false) {
  return useQuery({
    queryKey: groupKeys.one(id),
    queryFn: ({ signal }) => told('get', '/api/v1/groups/{group_id}', { path: { group_id: id }, signal }),
    refetchInterval: live,
  });
}

/** As it is now, whatever was read before. */
export const readGroup = (id: string) => told('get', '/api/v1/groups/{group_id}', { path: { group_id: id } });

function useGroupChange<A>(change: (asked: A) => Promise<FailureGroup>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: async (group) => {
      client.setQueryData(groupKeys.one(group.id), group);
      await lettersChanged(client);
    },
  });
}

/** What is not given stays; null takes it away. */
export const useAnnotateGroup = (id: string) =>
  useGroupChange((notes: GroupNotes) =>
    told('patch', '/api/v1/groups/{group_id}', { path: { group_id: id }, body: notes }),
  );

export const useMergeGroups = (id: string) =>
  useGroupChange((asked: { others: string[]; reason: string }) =>
    told('post', '/api/v1/groups/{group_id}/merge', { path: { group_id: id }, body: asked }),
  );

export const useSplitGroup = (id: string) =>
  useGroupChange((asked: { fingerprint: string; reason: string }) =>
    told('post', '/api/v1/groups/{group_id}/split', { path: { group_id: id }, body: asked }),
  );
