import { Button, SegmentedControl } from '@mantine/core';
import { useEffect, useState } from 'react';
import { Link } from 'react-router';
import { useOutcomes } from '@/api/runs';
import type { LetterOutcome, RunJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { useAddress } from '@/shared/address';
import { DataState } from '@/shared/DataState';
import { Permitted } from '@/shared/session';
import table from '@/shared/table.module.css';
import { OutcomeTable } from './OutcomeTable';
import { LazyRedriveDialog } from './LazyDialogs';
import { cameBack } from './run-figures';
import page from './run-page.module.css';

/** A page to read, and one to look through for some. */
const PAGE = { all: 50, some: 500 };
const ENOUGH = 50;
const MOST_IDS = 100;
const KINDS = ['all', 'back', 'good', 'quiet'] as const;
type Kind = (typeof KINDS)[number];
const OF: Record<Exclude<Kind, 'all'>, ReadonlySet<string>> = {
  back: new Set(['came back']),
  good: new Set(['confirmed', 'assumed', 'resolved']),
  quiet: new Set(['sent']),
};

/** What became of each letter, with a way to those that came back. */
export function Outcomes({ run }: { run: RunJson }) {
  const { runs } = useText();
  const text = runs.outcomes;
  const format = useFormat();
  const address = useAddress();
  const kind = KINDS.find((each) => each === address.get('outcome')) ?? 'all';
  const query = useOutcomes(run.id, kind === 'all' ? PAGE.all : PAGE.some);
  const { refetch, hasNextPage, isFetching, isError, fetchNextPage } = query;
  // What is shown follows the numbers above it.
  const told = `${run.progress.taken}/${run.progress.confirmed}/${cameBack(run)}`;
  useEffect(() => {
    void refetch({ cancelRefetch: false });
  }, [told, refetch]);
  const all = query.data?.pages.flatMap((each) => each.items) ?? [];
  const items = kind === 'all' ? all : all.filter((each) => OF[kind].has(each.outcome));
  const [wanted, setWanted] = useState(ENOUGH);
  const looking = kind !== 'all' && items.length < wanted && hasNextPage && !isError;
  useEffect(() => {
    if (looking && !isFetching) void fetchNextPage();
  }, [looking, isFetching, fetchNextPage]);
  return (
    <section className={`rd-panel ${page.list ?? ''}`} aria-label={text.title}>
      <div className={page.listHead}>
        <h2 className={page.title}>{text.title}</h2>
        <div className={page.choice}>
          <SegmentedControl
            size="xs"
            aria-label={text.filter}
            value={kind}
            data={KINDS.map((each) => ({ value: each, label: text[each] }))}
            onChange={(value) => address.set({ outcome: value === 'all' ? null : value }, { replace: true })}
          />
        </div>
      </div>
      {kind === 'back' && <BackActions items={items} />}
      <DataState query={query} lines={4} isEmpty={() => items.length === 0 && !looking} empty={<p className={page.nothing}>{kind === 'all' ? text.none : text.noneSuch}</p>}>
        {() => <OutcomeTable items={items} />}
      </DataState>
      {hasNextPage && (
        <div className={page.more}>
          <span className={table.dim}>{text.looked(format.number(all.length), format.number(run.progress.taken + run.progress.passed_over))}</span>
          <Button
            loading={isFetching}
            onClick={() => {
              setWanted(items.length + ENOUGH);
              if (kind === 'all') void fetchNextPage();
            }}
          >
            {text.lookOn}
          </Button>
        </div>
      )}
    </section>
  );
}

function BackActions({ items }: { items: readonly LetterOutcome[] }) {
  const { runs } = useText();
  const text = runs.outcomes;
  const [opened, setOpened] = useState(false);
  const ids = items.slice(0, MOST_IDS).map((each) => each.letter_id);
  if (ids.length === 0) return null;
  return (
    <div className={page.backActions}>
      <Button component={Link} to={paths.lettersBy(`id:${ids.join(',')}`)}>
        {text.open(ids.length)}
      </Button>
      <Permitted to="runs:make">
        {(disabled) => (
          <Button disabled={disabled} onClick={() => setOpened(true)}>
            {text.redrive(ids.length)}
          </Button>
        )}
      </Permitted>
      <LazyRedriveDialog selection={{ ids }} count={ids.length} opened={opened} onClose={() => setOpened(false)} />
    </div>
  );
}
