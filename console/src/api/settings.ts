import { useQuery } from '@tanstack/react-query';
import { told } from './client';

/** The settings as the server has loaded them, without secrets. */
export function useServerSettings(enabled = true) {
  return useQuery({
    queryKey: ['settings'],
    queryFn: ({ signal }) => told('get', '/api/v1/settings', { signal }),
    staleTime: 60_000,
    enabled,
  });
}
