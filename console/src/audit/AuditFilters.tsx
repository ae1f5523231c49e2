import { Button, Checkbox, NativeSelect, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useId, useState, type Ref } from 'react';
import { useText } from '@/locales/language';
import { visible } from '@/shared/untrusted';
import { DEEDS } from './deeds';
import { SPANS, type Wanted } from './wanted';
import classes from './AuditPage.module.css';

interface Props {
  wanted: Wanted;
  inputRef: Ref<HTMLInputElement>;
}

const PAUSE = 350;

export function AuditFilters({ wanted, inputRef }: Props) {
  const { filter } = useText().audit;
  const { time, set } = wanted;
  return (
    <div className={classes.filters} role="search" aria-label={filter.label}>
      <WhoBox wanted={wanted} inputRef={inputRef} />
      <WhatBox wanted={wanted} />
      <NativeSelect
        aria-label={filter.time}
        value={time}
        onChange={({ currentTarget: { value } }) => set({ time: value === 'any' ? null : value, from: null, to: null })}
        data={(['any', ...Object.keys(SPANS), 'range'] as (keyof typeof filter.times)[]).map((value) => ({ value, label: filter.times[value] }))}
      />
      {time === 'range' && (
        <div className={classes.range}>
          <MomentBox label={filter.from} value={wanted.from} onChange={(from) => set({ from })} />
          <MomentBox label={filter.to} value={wanted.to} onChange={(to) => set({ to })} />
        </div>
      )}
      <Checkbox
        label={filter.denials}
        checked={wanted.denied}
        onChange={(event) => set({ denied: event.currentTarget.checked ? 'yes' : null })}
      />
      {wanted.narrowed && (
        <Button size="sm" variant="subtle" onClick={wanted.clear}>
          {filter.clear}
        </Button>
      )}
    </div>
  );
}

/** Asks when somebody pauses, and follows the address when it was changed elsewhere. */
function WhoBox({ wanted, inputRef }: Props) {
  const { filter } = useText().audit;
  const [name, setName] = useState(wanted.who);
  const [seen, setSeen] = useState(wanted.who);
  if (wanted.who !== seen) {
    setSeen(wanted.who);
    if (wanted.who !== name.trim()) setName(wanted.who);
  }
  const ask = useDebouncedCallback((next: string) => wanted.set({ who: next.trim() }, { replace: wanted.who !== '' }), PAUSE);
  return (
    <TextInput
      ref={inputRef}
      className={classes.who ?? ''}
      leftSection={<IconSearch size={15} aria-hidden />}
      aria-label={filter.who}
      placeholder={filter.who}
      maxLength={200}
      value={name}
      onChange={(event) => {
        setName(event.currentTarget.value);
        ask(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') event.currentTarget.blur();
      }}
    />
  );
}

function WhatBox({ wanted }: { wanted: Wanted }) {
  const { audit: text } = useText();
  const known = Object.values(DEEDS).flat();
  const other = wanted.what !== '' && !known.includes(wanted.what);
  return (
    <NativeSelect
      aria-label={text.filter.what}
      value={wanted.what}
      onChange={(event) => wanted.set({ what: event.currentTarget.value })}
      data={[
        { value: '', label: text.filter.anything },
        ...Object.entries(DEEDS).map(([kind, deeds]) => ({
          group: text.kinds[kind] ?? kind,
          items: deeds.map((value) => ({ value, label: text.whats[value] ?? value })),
        })),
        ...(other ? [{ group: text.filter.other, items: [{ value: wanted.what, label: visible(wanted.what).slice(0, 80) }] }] : []),
      ]}
    />
  );
}

/** As `datetime-local` has it: in the viewer's zone, without its name. */
function local(moment: string): string {
  if (moment === '') return '';
  const read = new Date(moment);
  return new Date(read.getTime() - read.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function MomentBox({ label, value, onChange }: { label: string; value: string; onChange: (moment: string) => void }) {
  const id = useId();
  const said = (text: string) => onChange(text === '' ? '' : new Date(text).toISOString());
  return (
    <div className={classes.moment}>
      <label htmlFor={id}>{label}</label>
      <TextInput id={id} type="datetime-local" value={local(value)} onChange={(event) => said(event.currentTarget.value)} />
    </div>
  );
}
