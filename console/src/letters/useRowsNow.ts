import { useMemo } from 'react';
import { useLettersNow } from '@/api/letter-lists';
import type { LetterLine, LetterPage } from '@/api/types';
import { useLiveEvery } from '@/shared/live';

const EVERY = 10_000;
/** Those below are as they were when they were loaded. */
const FOLLOWED = 200;

/** The rows of a list in the order they came, each as it is now. */
export function useRowsNow(data: { pages: LetterPage[] } | undefined): readonly LetterLine[] {
  const rows = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  const ids = useMemo(() => rows.slice(0, FOLLOWED).map((row) => row.id), [rows]);
  const { data: now } = useLettersNow(ids, useLiveEvery(EVERY));
  return useMemo(() => (now.size === 0 ? rows : rows.map((row) => now.get(row.id) ?? row)), [rows, now]);
}
