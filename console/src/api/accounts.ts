import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { told } from './client';
import type { NewToken, NewUser, UserChange } from './types';

export const accountKeys = {
  tokens: ['accounts', 'tokens'] as const,
  users: ['accounts', 'users'] as const,
};

export function useTokens(enabled = true) {
  return useQuery({
    queryKey: accountKeys.tokens,
    queryFn: ({ signal }) => told('get', '/api/v1/tokens', { signal }),
    enabled,
  });
}

export function useUsers(enabled = true) {
  return useQuery({
    queryKey: accountKeys.users,
    queryFn: ({ signal }) => told('get', '/api/v1/users', { signal }),
    enabled,
  });
}

function useAccountChange<A, T>(change: (asked: A) => Promise<T>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => client.invalidateQueries({ queryKey: ['accounts'] }),
    gcTime: 0,
  });
}

/** The token's text is in this answer and nowhere else. */
export const useCreateToken = () =>
  useAccountChange((asked: NewToken) => told('post', '/api/v1/tokens', { body: asked }));

export const useRevokeToken = () =>
  useAccountChange(({ id, reason }: { id: string; reason: string }) =>
    told('post', '/api/v1/tokens/{token_id}/revoke', { path: { token_id: id }, body: { reason } }),
  );

export const useAddUser = () => useAccountChange((asked: NewUser) => told('post', '/api/v1/users', { body: asked }));

export const useChangeUser = () =>
  useAccountChange(({ name, change }: { name: string; change: UserChange }) =>
    told('patch', '/api/v1/users/{name}', { path: { name }, body: change }),
  );
