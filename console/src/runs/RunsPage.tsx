import { Button, SegmentedControl } from '@mantine/core';
import { IconPlayerTrackNext } from '@tabler/icons-react';
import { Link, useNavigate } from 'react-router';
import { hasEnded } from '@/api/events';
import { useRuns } from '@/api/runs';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { useAddress } from '@/shared/address';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { useKeys } from '@/shared/keys';
import { useLiveEvery } from '@/shared/live';
import { LoadMore } from '@/shared/LoadMore';
import { PageHeader } from '@/shared/PageHeader';
import { useCursor } from '@/shared/useCursor';
import { AwaitingMe } from './AwaitingMe';
import { RunTable } from './RunTable';
import classes from './runs.module.css';

const SHOWN = ['all', 'active', 'ended'] as const;
type Shown = (typeof SHOWN)[number];

/** Every run, the newest first; what waits for me above all. */
export function RunsPage() {
  const { runs: text, shared } = useText();
  const address = useAddress();
  const navigate = useNavigate();
  const show = SHOWN.find((each) => each === address.get('show')) ?? 'all';
  const query = useRuns(show === 'active', useLiveEvery(4_000));
  const all = query.data?.pages.flatMap((page) => page.items) ?? [];
  const items = show === 'ended' ? all.filter((each) => hasEnded(each.status)) : all;
  const cursor = useCursor(items.length);
  useKeys([
    { key: 'j', label: shared.keys.next, run: cursor.next },
    { key: 'k', label: shared.keys.previous, run: cursor.previous },
    {
      key: 'Enter',
      label: shared.keys.open,
      run: () => {
        const picked = items[cursor.at];
        if (picked !== undefined) void navigate(paths.run(picked.id));
      },
    },
  ]);
  return (
    <>
      <PageHeader
        title={text.title}
        actions={
          <SegmentedControl
            size="xs"
            aria-label={text.show.label}
            value={show}
            data={SHOWN.map((each) => ({ value: each, label: text.show[each] }))}
            onChange={(value) => address.set({ show: value === 'all' ? null : value })}
          />
        }
      />
      <AwaitingMe />
      <div className={`rd-panel ${classes.panel ?? ''}`}>
        <DataState query={query} isEmpty={() => items.length === 0 && !query.hasNextPage} empty={<NoRuns show={show} />}>
          {() => (
            <>
              <RunTable items={items} at={cursor.at} />
              <LoadMore query={query} />
            </>
          )}
        </DataState>
      </div>
    </>
  );
}

function NoRuns({ show }: { show: Shown }) {
  const { runs: text } = useText();
  if (show === 'all') {
    return (
      <EmptyState
        icon={IconPlayerTrackNext}
        title={text.empty.title}
        what={text.empty.what}
        action={
          <Button component={Link} to={paths.letters}>
            {text.empty.action}
          </Button>
        }
      />
    );
  }
  const words = show === 'active' ? text.noActive : text.noEnded;
  return (
    <EmptyState
      icon={IconPlayerTrackNext}
      title={words.title}
      what={words.what}
      action={
        <Button component={Link} to={paths.runs}>
          {words.action}
        </Button>
      }
    />
  );
}
