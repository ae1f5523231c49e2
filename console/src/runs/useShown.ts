import { useState } from 'react';

interface Query<T> {
  data: T | undefined;
  isFetching: boolean;
  error: unknown;
}

/** The newest answer there was, and whether it is the one to the question that is asked now. */
export function useShown<T>(query: Query<T>): { shown: T | undefined; current: boolean } {
  const [kept, setKept] = useState(query.data);
  if (query.data !== undefined && query.data !== kept) setKept(query.data);
  return { shown: query.data ?? kept, current: query.data !== undefined && query.error === null };
}
