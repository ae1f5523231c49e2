import { ActionIcon, Button, NativeSelect, TextInput } from '@mantine/core';
import { IconPlus, IconTrash } from '@tabler/icons-react';
import { useText } from '@/locales/language';
import { headerClass } from './header-class';
import { hasValue, kindOfValue, KINDS, ofHeader, type OperationDraft, type OperationKind } from './operations';
import classes from './dialogs.module.css';

let made = 0;

export function newOperation(): OperationDraft {
  made += 1;
  return { id: made, kind: 'set', place: '', value: '' };
}

interface Props {
  operations: OperationDraft[];
  onChange: (operations: OperationDraft[]) => void;
}

/** Operations in the order they are applied. */
export function OperationsEditor({ operations, onChange }: Props) {
  const { runs } = useText();
  const text = runs.redrive.edit;
  const change = (id: number, changes: Partial<OperationDraft>) =>
    onChange(operations.map((each) => (each.id === id ? { ...each, ...changes } : each)));
  return (
    <div className={classes.operations}>
      {operations.map((each, at) => (
        <OperationRow
          key={each.id}
          number={at + 1}
          operation={each}
          onChange={(changes) => change(each.id, changes)}
          onRemove={() => onChange(operations.filter((other) => other.id !== each.id))}
        />
      ))}
      <Button leftSection={<IconPlus size={14} aria-hidden />} onClick={() => onChange([...operations, newOperation()])}>
        {text.add}
      </Button>
    </div>
  );
}

interface RowProps {
  number: number;
  operation: OperationDraft;
  onChange: (changes: Partial<OperationDraft>) => void;
  onRemove: () => void;
}

function OperationRow({ number, operation, onChange, onRemove }: RowProps) {
  const { runs } = useText();
  const text = runs.redrive.edit;
  const { kind, place, value } = operation;
  const locked = ofHeader(kind) && headerClass(place) === 'locked';
  return (
    <fieldset className={classes.operation}>
      <legend className={classes.legend}>{text.operation(number)}</legend>
      <NativeSelect
        size="xs"
        aria-label={text.operation(number)}
        value={kind}
        data={KINDS.map((each) => ({ value: each, label: text.kinds[each] }))}
        onChange={(event) => onChange({ kind: event.currentTarget.value as OperationKind })}
      />
      <ActionIcon aria-label={text.remove(number)} onClick={onRemove} className={classes.bin}>
        <IconTrash size={15} aria-hidden />
      </ActionIcon>
      <TextInput
        size="xs"
        label={ofHeader(kind) ? text.header : text.place}
        placeholder={ofHeader(kind) ? 'tenant' : text.placeHelp}
        value={place}
        spellCheck={false}
        classNames={{ input: 'rd-mono' }}
        error={locked ? text.locked : undefined}
        onChange={(event) => onChange({ place: event.currentTarget.value })}
      />
      {hasValue(kind) && (
        <TextInput
          size="xs"
          label={kind === 'rename' ? text.newKey : text.value}
          description={kind === 'rename' || value === '' ? undefined : told(text, value)}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          value={value}
          spellCheck={false}
          classNames={{ input: 'rd-mono' }}
          onChange={(event) => onChange({ value: event.currentTarget.value })}
        />
      )}
    </fieldset>
  );
}

function told(text: ReturnType<typeof useText>['runs']['redrive']['edit'], value: string): string {
  const kind = kindOfValue(value);
  const quotes = kind === 'number' || kind === 'word' ? ` ${text.quote}` : '';
  return text.reads(text.as[kind]) + quotes;
}
