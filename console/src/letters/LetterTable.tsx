import { Checkbox } from '@mantine/core';
import type { LetterLine } from '@/api/types';
import { useText } from '@/locales/language';
import table from '@/shared/table.module.css';
import { NUMERIC, type ColumnName } from './columns';
import { LetterRow } from './LetterRow';
import type { useChosen } from './useChosen';
import classes from './LetterTable.module.css';

interface Props {
  letters: readonly LetterLine[];
  columns: readonly ColumnName[];
  /** The row that keys have chosen; -1: none. */
  at: number;
  chosen: ReturnType<typeof useChosen>;
  /** The filter of the list, for the way back. */
  filter: string;
}

export function LetterTable({ letters, columns, at, chosen, filter }: Props) {
  const { letters: text } = useText();
  return (
    <table className={table.table} aria-label={text.title}>
      <thead>
        <tr>
          <th scope="col" className={classes.pick}>
            <Checkbox
              size="xs"
              aria-label={text.select.page}
              checked={chosen.everyListed}
              indeterminate={chosen.someListed && !chosen.everyListed}
              onChange={(event) => chosen.toggleListed(event.currentTarget.checked)}
            />
          </th>
          <th scope="col">{text.columns.error}</th>
          {columns.map((name) => (
            <th key={name} scope="col" className={NUMERIC.has(name) ? table.number : undefined}>
              {text.columns[name]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {letters.map((letter, row) => (
          <LetterRow
            key={letter.id}
            letter={letter}
            columns={columns}
            current={row === at}
            selected={chosen.has(letter.id)}
            onSelect={chosen.toggle}
            filter={filter}
          />
        ))}
      </tbody>
    </table>
  );
}
