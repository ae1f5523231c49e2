import { Button } from '@mantine/core';
import { IconArrowUp } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useNewer, type useLetterList } from '@/api/letter-lists';
import { letterKeys } from '@/api/letters';
import type { LetterLine } from '@/api/types';
import { useText } from '@/locales/language';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { useLiveEvery } from '@/shared/live';
import { LoadMore } from '@/shared/LoadMore';
import type { ColumnName } from './columns';
import { LetterTable } from './LetterTable';
import type { useChosen } from './useChosen';
import classes from './LettersPage.module.css';

interface Props {
  query: ReturnType<typeof useLetterList>;
  rows: readonly LetterLine[];
  filter: string;
  columns: readonly ColumnName[];
  at: number;
  chosen: ReturnType<typeof useChosen>;
  onFilter: (next: string) => void;
}

export function LetterList({ query, rows, filter, columns, at, chosen, onFilter }: Props) {
  const { letters: text } = useText();
  return (
    <>
      <NewLetters query={query} filter={filter} newest={rows[0]?.created_at} />
      <div className={`rd-panel ${classes.panel ?? ''}`}>
        <DataState
          query={query}
          isEmpty={() => rows.length === 0}
          lines={10}
          empty={
            filter === '' ? (
              <EmptyState title={text.none.title} what={text.none.what} />
            ) : (
              <EmptyState title={text.empty.title} what={text.empty.what} action={<Button onClick={() => onFilter('')}>{text.empty.clear}</Button>} />
            )
          }
        >
          {(data) => (
            <>
              {(data.pages[0]?.unsearched ?? 0) > 0 && <p className={classes.note}>{text.unsearched}</p>}
              <div className={classes.scroll}>
                <LetterTable letters={rows} columns={columns} at={at} chosen={chosen} filter={filter} />
              </div>
              <LoadMore query={query} />
            </>
          )}
        </DataState>
      </div>
    </>
  );
}

const EVERY = 5_000;
/** Older than anything, for a list that is empty: every letter is new to it. */
const EVER = '1970-01-01T00:00:00Z';

interface NewProps extends Pick<Props, 'query' | 'filter'> {
  newest: string | undefined;
}

/** Letters that have come meanwhile are told, and shown when somebody wants to see them: rows do not move. */
function NewLetters({ query, filter, newest }: NewProps) {
  const { letters: text } = useText();
  const client = useQueryClient();
  const every = useLiveEvery(EVERY);
  const since = query.data === undefined ? undefined : (newest ?? EVER);
  const { data: count } = useNewer(filter === '' ? {} : { q: filter }, since, every);
  const show = () => {
    void client.invalidateQueries({ queryKey: letterKeys.all });
    document.documentElement.scrollTop = 0;
  };
  return (
    <div className={classes.newer} role="status">
      {count != null && count.number > 0 && (
        <Button size="compact-sm" radius="xl" variant="filled" leftSection={<IconArrowUp size={13} aria-hidden />} onClick={show}>
          {text.newer(count.number, count.exact)}
        </Button>
      )}
    </div>
  );
}
