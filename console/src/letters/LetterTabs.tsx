import { Skeleton, Tabs } from '@mantine/core';
import { lazy, Suspense } from 'react';
import type { useReveal } from '@/api/letters';
import type { Letter } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { useAddress } from '@/shared/address';
import { Failures } from './Failures';
import { Unreadable } from './Unreadable';
import classes from './LetterPage.module.css';

// Those that are not open at first are loaded when they are.
const Headers = lazy(async () => ({ default: (await import('./Headers')).Headers }));
const Masking = lazy(async () => ({ default: (await import('./Masking')).Masking }));
const Payload = lazy(async () => ({ default: (await import('./Payload')).Payload }));
const Related = lazy(async () => ({ default: (await import('./Related')).Related }));
const Story = lazy(async () => ({ default: (await import('./Story')).Story }));

const TABS = ['failure', 'payload', 'headers', 'story', 'related'] as const;
type TabName = (typeof TABS)[number];

interface Props {
  letter: Letter;
  reveal: ReturnType<typeof useReveal>;
}

/** The parts of a letter. Which one is open stands in the address, so that a link leads there. */
export function LetterTabs({ letter, reveal }: Props) {
  const { letters: text, shared } = useText();
  const format = useFormat();
  const address = useAddress();
  const asked = address.get('tab');
  const tab = TABS.find((each) => each === asked) ?? 'failure';
  const numbers: Partial<Record<TabName, number>> = { failure: letter.failures.length, headers: letter.message.headers.length };
  return (
    <Tabs
      className={`rd-panel ${classes.tabs ?? ''}`}
      value={tab}
      keepMounted={false}
      onChange={(next) => address.set({ tab: next === 'failure' ? null : next, attempt: null }, { replace: true })}
    >
      <Tabs.List className={classes.tabList ?? ''}>
        {TABS.map((name) => (
          <Tabs.Tab key={name} value={name}>
            {text.letter.tabs[name]}
            {(numbers[name] ?? 0) > 1 && <span className={classes.number}>{format.number(numbers[name] ?? 0)}</span>}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {(tab === 'payload' || tab === 'headers') && letter.unreadable === null && (
        <Suspense>
          <Masking queue={letter.queue} reveal={reveal} />
        </Suspense>
      )}
      <Tabs.Panel value={tab} className={classes.panel ?? ''}>
        <Suspense fallback={<Skeleton height={160} aria-label={shared.loading} />}>
          <TabContent name={tab} letter={letter} revealed={reveal.data === undefined ? undefined : reveal.variables} />
        </Suspense>
      </Tabs.Panel>
    </Tabs>
  );
}

function TabContent({ name, letter, revealed }: { name: TabName; letter: Letter; revealed: string | undefined }) {
  const address = useAddress();
  const last = letter.failures.length - 1;
  const attempt = address.get('attempt') === '' ? last : Number(address.get('attempt')) - 1;
  const showAttempt = (at: number) => address.set({ tab: null, attempt: at === last ? null : String(at + 1) }, { replace: name === 'failure' });
  switch (name) {
    case 'failure':
      return <Failures failures={letter.failures} at={attempt >= 0 ? attempt : last} onShow={showAttempt} />;
    case 'payload':
      return <Payload letter={letter} revealed={revealed} view={address.get('view')} onView={(view) => address.set({ view }, { replace: true })} />;
    case 'headers':
      return letter.unreadable === null ? <Headers headers={letter.message.headers} /> : <Unreadable why={letter.unreadable} />;
    case 'story':
      return <Story letter={letter} onTrace={showAttempt} />;
    case 'related':
      return <Related letter={letter} />;
  }
}
