import { QueryClient } from '@tanstack/react-query';
import { ApiProblem } from './problem';

const RETRIES = 2;
const LONGEST = 30_000;

export function shouldRetry(failures: number, error: unknown): boolean {
  return error instanceof ApiProblem && error.isAway && failures < RETRIES;
}

export function retryDelay(failures: number, error: unknown): number {
  const told = error instanceof ApiProblem ? error.retryAfter : null;
  return told === null ? Math.min(LONGEST, 1000 * 2 ** failures) : told * 1000;
}

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      // Whether the server answers is seen by our own requests; the browser's opinion of the network is not asked.
      queries: { retry: shouldRetry, retryDelay, staleTime: 5_000, networkMode: 'always', refetchOnWindowFocus: true },
      mutations: { retry: false, networkMode: 'always' },
    },
  });
}
