import { Button } from '@mantine/core';
import { useRef } from 'react';
import { useNavigate } from 'react-router';
import { useGroupPages } from '@/api/insights';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { useKeys } from '@/shared/keys';
import { useLiveEvery } from '@/shared/live';
import { LoadMore } from '@/shared/LoadMore';
import { PageHeader } from '@/shared/PageHeader';
import { useCursor } from '@/shared/useCursor';
import { GroupFilters } from './GroupFilters';
import { GroupTable } from './GroupTable';
import { useWanted } from './wanted';
import classes from './GroupsPage.module.css';

const EVERY = 15_000;

/** Failures by cause. */
export function GroupsPage() {
  const { groups: text, shared } = useText();
  const navigate = useNavigate();
  const state = useWanted();
  const query = useGroupPages(state.wanted, useLiveEvery(EVERY));
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  const cursor = useCursor(items.length);
  const box = useRef<HTMLInputElement>(null);
  const open = () => {
    const picked = items[cursor.at];
    if (picked !== undefined) void navigate(paths.group(picked.id));
  };
  useKeys([
    { key: '/', label: shared.keys.search, run: () => box.current?.focus() },
    { key: 'j', label: shared.keys.next, run: cursor.next },
    { key: 'k', label: shared.keys.previous, run: cursor.previous },
    { key: 'Enter', label: shared.keys.open, run: open },
  ]);
  const { clear, ...noMatch } = text.noMatch;
  const empty = state.narrowed ? (
    <EmptyState {...noMatch} action={<Button onClick={state.clear}>{clear}</Button>} />
  ) : (
    <EmptyState {...text.none} />
  );
  return (
    <>
      <PageHeader title={text.title} />
      <GroupFilters state={state} inputRef={box} />
      <div className={`rd-panel ${classes.panel ?? ''}`} data-old={query.isPlaceholderData || undefined}>
        <DataState query={query} isEmpty={() => items.length === 0} empty={empty}>
          {() => (
            <>
              <GroupTable groups={items} at={cursor.at} sort={state.wanted.sort} onSort={state.setSort} />
              <LoadMore query={query} />
            </>
          )}
        </DataState>
      </div>
    </>
  );
}
