import { Button, TextInput } from '@mantine/core';
import { IconSearch, IconStack2 } from '@tabler/icons-react';
import { useRef } from 'react';
import { useQueues } from '@/api/queues';
import type { QueueOverview } from '@/api/types';
import { useText } from '@/locales/language';
import { useAddress } from '@/shared/address';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { useKeys } from '@/shared/keys';
import { useLiveEvery } from '@/shared/live';
import { PageHeader } from '@/shared/PageHeader';
import { Untrusted } from '@/shared/Untrusted';
import { byNeed } from './health';
import { QueueTable } from './QueueTable';
import classes from './QueuesPage.module.css';

/** As many can be seen at a glance. */
const FEW = 8;

/** Every queue of the broker with its depth, and the letters that wait for a person. */
export function QueuesPage() {
  const { queues: text } = useText();
  const query = useQueues([], useLiveEvery(5_000));
  const count = query.data?.items.length ?? 0;
  return (
    <>
      <PageHeader title={text.title} {...(count > 0 ? { aside: text.about(count) } : {})} />
      <DataState
        query={query}
        isEmpty={({ items }) => items.length === 0}
        empty={
          <div className="rd-panel">
            <EmptyState {...text.empty} icon={IconStack2} />
          </div>
        }
      >
        {({ items, incomplete }) => <Found queues={items} incomplete={incomplete} />}
      </DataState>
    </>
  );
}

function Found({ queues, incomplete }: { queues: readonly QueueOverview[]; incomplete: string }) {
  const { queues: text, shared } = useText();
  const { get, set } = useAddress();
  const box = useRef<HTMLInputElement>(null);
  const wanted = get('name');
  const found = byNeed(queues.filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase())));
  useKeys([{ key: '/', label: shared.keys.search, run: () => box.current?.focus() }]);
  return (
    <>
      {(queues.length > FEW || wanted !== '') && (
        <TextInput
          ref={box}
          className={classes.find ?? ''}
          leftSection={<IconSearch size={15} aria-hidden />}
          aria-label={text.find}
          placeholder={text.find}
          value={wanted}
          onChange={(event) => set({ name: event.currentTarget.value }, { replace: true })}
        />
      )}
      <div className={`rd-panel ${classes.panel ?? ''}`}>
        {incomplete !== '' && (
          <p className={classes.note}>
            {text.incomplete} <Untrusted text={incomplete} most={500} />
          </p>
        )}
        {found.length === 0 ? (
          <EmptyState {...text.noMatch} action={<Button onClick={() => set({ name: null })}>{shared.filter.clear}</Button>} />
        ) : (
          <QueueTable queues={found} />
        )}
      </div>
    </>
  );
}
