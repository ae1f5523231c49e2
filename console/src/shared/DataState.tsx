import { Skeleton } from '@mantine/core';
import type { ReactNode } from 'react';
import { useText } from '@/locales/language';
import { ProblemNote } from './ProblemNote';
import classes from './states.module.css';

/** What it needs of a query of TanStack Query. */
interface Query<T> {
  data: T | undefined;
  error: unknown;
  isPending: boolean;
  refetch: () => unknown;
}

interface Props<T> {
  query: Query<T>;
  /** Whether there is nothing to show, and what to say then. */
  isEmpty?: (data: T) => boolean;
  empty?: ReactNode;
  /** How many grey lines stand for what is loading. */
  lines?: number;
  children: (data: T) => ReactNode;
}

/** Loading, empty, failed or there. What was there stays while the server is away, with the problem above it. */
export function DataState<T>({ query, isEmpty, empty, lines = 6, children }: Props<T>) {
  const { shared } = useText();
  const retry = () => void query.refetch();
  if (query.data === undefined && query.error !== null) return <ProblemNote error={query.error} onRetry={retry} />;
  if (query.data === undefined) {
    return (
      <div className={classes.skeletons} role="status" aria-label={shared.loading}>
        {Array.from({ length: lines }, (_, at) => (
          <Skeleton key={at} height={16} width={`${94 - ((at * 17) % 40)}%`} />
        ))}
      </div>
    );
  }
  return (
    <>
      {query.error !== null && <ProblemNote error={query.error} onRetry={retry} />}
      {isEmpty?.(query.data) === true ? empty : children(query.data)}
    </>
  );
}
