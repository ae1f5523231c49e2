import { useCallback, useState } from 'react';
import { keep, kept } from '@/shared/kept';

/** What a line can tell beside its error. */
export const COLUMNS = [
  'status',
  'queue',
  'handler',
  'kind',
  'attempts',
  'generation',
  'revision',
  'group',
  'message',
  'id',
  'failed',
  'changed',
  'when',
] as const;
export type ColumnName = (typeof COLUMNS)[number];

export const USUAL: readonly ColumnName[] = ['status', 'queue', 'attempts', 'when'];
export const NUMERIC: ReadonlySet<ColumnName> = new Set(['attempts', 'generation', 'revision', 'failed', 'changed', 'when']);
const KEPT_AS = 'redrive.letters.columns';

function chosen(): readonly ColumnName[] {
  const found = kept(KEPT_AS)?.split(',') ?? null;
  return found === null ? USUAL : COLUMNS.filter((each) => found.includes(each));
}

/** Which columns this person wants to see, kept in this browser. */
export function useColumns() {
  const [shown, setShown] = useState(chosen);
  const choose = useCallback((names: readonly ColumnName[]) => {
    const ordered = COLUMNS.filter((each) => names.includes(each));
    keep(KEPT_AS, ordered.join(','));
    setShown(ordered);
  }, []);
  return { shown, choose };
}
