import { Button, NativeSelect } from '@mantine/core';
import type { Ref } from 'react';
import type { GroupOrder } from '@/api/insights';
import { useValues } from '@/api/stats';
import { useText } from '@/locales/language';
import { SearchBox } from '@/shared/SearchBox';
import { visible } from '@/shared/untrusted';
import { VERDICTS } from './state';
import { ORDERS, type Wanted } from './wanted';
import classes from './GroupFilters.module.css';

interface Props {
  state: Wanted;
  inputRef: Ref<HTMLInputElement>;
}

const MOST_VALUES = 200;

export function GroupFilters({ state, inputRef }: Props) {
  const { groups } = useText();
  const { filter: text } = groups;
  const { wanted, set, setSort } = state;
  return (
    <div className={classes.filters} role="search">
      <SearchBox
        className={classes.text}
        label={text.text}
        value={wanted.text ?? ''}
        inputRef={inputRef}
        onSearch={(next, replace) => set({ text: next }, replace)}
      />
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
