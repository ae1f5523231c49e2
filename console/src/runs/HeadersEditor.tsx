import { ActionIcon, Button, TextInput } from '@mantine/core';
import { IconLock, IconPlus, IconShieldExclamation, IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import { useText } from '@/locales/language';
import { visible } from '@/shared/untrusted';
import { headerClass } from './header-class';
import type { HeaderRow } from './header-rows';
import classes from './dialogs.module.css';

const PAGE = 100;

interface Props {
  rows: HeaderRow[];
  onChange: (rows: HeaderRow[]) => void;
}

/** Names and values, in their order, repeats included. */
export function HeadersEditor({ rows, onChange }: Props) {
  const { runs, shared } = useText();
  const text = runs.edit.headers;
  const [most, setMost] = useState(PAGE);
  const change = (id: number, changes: Partial<HeaderRow>) => onChange(rows.map((each) => (each.id === id ? { ...each, ...changes } : each)));
  const add = () => {
    setMost(Math.max(most, rows.length + 1));
    onChange([...rows, { id: Math.max(-1, ...rows.map((each) => each.id)) + 1, name: '', value: '' }]);
  };
  return (
    <div className={classes.headers}>
      <p className={classes.note}>{rows.length === 0 ? text.none : text.help}</p>
      {rows.slice(0, most).map((row, at) => (
        <Row
          key={row.id}
          row={row}
          number={at + 1}
          onChange={(changes) => change(row.id, changes)}
          onRemove={() => onChange(rows.filter((each) => each.id !== row.id))}
        />
      ))}
      <div className={classes.row}>
        {rows.length > most && <Button onClick={() => setMost(most + PAGE)}>{shared.more}</Button>}
        <Button leftSection={<IconPlus size={14} aria-hidden />} onClick={add}>
          {text.add}
        </Button>
      </div>
    </div>
  );
}

interface RowProps {
  row: HeaderRow;
  number: number;
  onChange: (changes: Partial<HeaderRow>) => void;
  onRemove: () => void;
}

function Row({ row, number, onChange, onRemove }: RowProps) {
  const { runs } = useText();
  const text = runs.edit.headers;
  const kind = headerClass(row.name);
  // A name that is being typed is not locked while it is typed: what came with the message is.
  const [came] = useState(row.name);
  const locked = came !== '' && headerClass(came) === 'locked';
  return (
    <div className={classes.header} role="group" aria-label={text.row(number)}>
      <TextInput
        size="xs"
        aria-label={text.name}
        placeholder={text.name}
        value={row.name}
        disabled={locked}
        error={!locked && kind === 'locked' ? text.locked : undefined}
        spellCheck={false}
        classNames={{ input: 'rd-mono' }}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
      />
      <TextInput
        size="xs"
        aria-label={text.value}
        placeholder={text.value}
        value={row.value}
        disabled={locked}
        spellCheck={false}
        classNames={{ input: 'rd-mono' }}
        onChange={(event) => onChange({ value: event.currentTarget.value })}
      />
      <span className={classes.mark}>
        {locked && <IconLock size={15} role="img" aria-label={text.locked} title={text.locked} />}
        {!locked && kind === 'sensitive' && (
          <IconShieldExclamation size={15} className={classes.warn} role="img" aria-label={text.sensitive} title={text.sensitive} />
        )}
        {!locked && (
          <ActionIcon aria-label={text.remove(visible(row.name))} onClick={onRemove}>
            <IconTrash size={15} aria-hidden />
          </ActionIcon>
        )}
      </span>
    </div>
  );
}
