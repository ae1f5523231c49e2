import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { told } from './client';

const KEY = ['doctor'] as const;
const WHILE_LOOKING = 1_000;

/** What was found last; nothing is looked at for it. While a look is under way, it is asked again and again. */
export function useExamination() {
  return useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => told('get', '/api/v1/doctor', { signal }),
    refetchInterval: ({ state }) => (state.data?.running === true ? WHILE_LOOKING : false),
  });
}

/** Begins a look, unless the server has done one within the last minute. */
export function useLook() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => told('post', '/api/v1/doctor'),
    onSuccess: (examination) => client.setQueryData(KEY, examination),
  });
}
