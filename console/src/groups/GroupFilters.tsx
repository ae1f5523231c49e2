import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useState, type Ref } from 'react';
import type { GroupOrder } from '@/api/insights';
import { useValues } from '@/api/stats';
import { useText } from '@/locales/language';
import { visible } from '@/shared/untrusted';
import { VERDICTS } from './state';
import { ORDERS, type Wanted } from './wanted';
import classes from './GroupFilters.module.css';

interface Props {
  state: Wanted;
  inputRef: Ref<HTMLInputElement>;
}

const MOST_VALUES = 200;
const PAUSE = 250;

export function GroupFilters({ state, inputRef }: Props) {
  const { groups } = useText();
  const { filter: text } = groups;
  const { wanted, set, setSort } = state;
  return (
    <div className={classes.filters} role="search">
      <TextBox key={wanted.text === undefined ? 'none' : 'some'} state={state} inputRef={inputRef} />
      <Known field="queue" label={text.queue} any={text.anyQueue} value={wanted.queue} onChange={(queue) => set({ queue })} />
      <Known field="owner" label={text.owner} any={text.anyOwner} value={wanted.owner} onChange={(owner) => set({ owner })} />
      <NativeSelect
        aria-label={text.verdict}
        value={wanted.verdict ?? ''}
        onChange={(event) => set({ verdict: event.currentTarget.value })}
        data={[{ value: '', label: text.anyVerdict }, ...VERDICTS.map((value) => ({ value, label: groups.verdicts[value] }))]}
      />
      <NativeSelect
        className={classes.sort ?? ''}
        aria-label={groups.sortBy}
        value={wanted.sort}
        onChange={(event) => setSort(event.currentTarget.value as GroupOrder)}
        data={ORDERS.map((value) => ({ value, label: groups.sorts[value] }))}
      />
      {state.narrowed && (
        <Button size="sm" variant="subtle" onClick={state.clear}>
          {text.clear}
        </Button>
      )}
    </div>
  );
}

/** Asks when somebody pauses. While they type on, the address is replaced, so that back leads to before. */
function TextBox({ state, inputRef }: Props) {
  const { groups } = useText();
  const [text, setText] = useState(state.wanted.text ?? '');
  const ask = useDebouncedCallback((next: string) => state.set({ text: next.trim() }, state.wanted.text !== undefined), PAUSE);
  return (
    <TextInput
      ref={inputRef}
      className={classes.text ?? ''}
      leftSection={<IconSearch size={15} aria-hidden />}
      aria-label={groups.filter.text}
      placeholder={groups.filter.text}
      maxLength={200}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        ask(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') event.currentTarget.blur();
      }}
    />
  );
}

interface KnownProps {
  field: 'queue' | 'owner';
  label: string;
  any: string;
  value: string | undefined;
  onChange: (value: string) => void;
}

/** One of the values that are known; the one that holds now is among them, even if it is known no more. */
function Known({ field, label, any, value, onChange }: KnownProps) {
  const known = useValues(field, '', MOST_VALUES);
  const values = (known.data?.items ?? []).map((each) => each.value);
  const all = value === undefined || values.includes(value) ? values : [value, ...values];
  return (
    <NativeSelect
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => onChange(event.currentTarget.value)}
      data={[{ value: '', label: any }, ...all.map((each) => ({ value: each, label: visible(each).slice(0, 80) }))]}
    />
  );
}
