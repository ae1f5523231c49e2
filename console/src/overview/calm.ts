import { problemFrom } from '@/api/problem';

interface Query<T> {
  data: T | undefined;
  error: unknown;
  isPending: boolean;
  refetch: () => unknown;
}

/** While the server is away a banner tells so, once; parts that have something to show go on showing it. */
export function calm<T>({ data, error, isPending, refetch }: Query<T>): Query<T> {
  const silent = data !== undefined && error !== null && problemFrom(error).isAway;
  return { data, error: silent ? null : error, isPending, refetch };
}
