import { Button, Checkbox, NativeSelect, TextInput } from '@mantine/core';
import { useId, type Ref } from 'react';
import { useText } from '@/locales/language';
import { SearchBox } from '@/shared/SearchBox';
import { visible } from '@/shared/untrusted';
import { DEEDS } from './deeds';
import { SPANS, type Wanted } from './wanted';
import classes from './AuditPage.module.css';

interface Props {
  wanted: Wanted;
  inputRef: Ref<HTMLInputElement>;
}

export function AuditFilters({ wanted, inputRef }: Props) {
  const { filter } = useText().audit;
  const { time, set } = wanted;
  return (
    <div className={classes.filters} role="search" aria-label={filter.label}>
      <SearchBox
        className={classes.who}
        label={filter.who}
        value={wanted.who}
        inputRef={inputRef}
        onSearch={(who, replace) => set({ who }, { replace })}
      />
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
