import { Link } from 'react-router';
import { useNewestLetters } from '@/api/insights';
import type { FailureGroup } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { Instant } from '@/shared/Instant';
import { StatusBadge } from '@/shared/StatusBadge';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
import { Section } from '@/shared/Section';
import classes from './GroupLetters.module.css';

const SHOWN = 6;

/** The newest ones, and the way to all of them. */
export function GroupLetters({ group, live }: { group: FailureGroup; live: number | false }) {
  const { groups: text, letters } = useText();
  const query = useNewestLetters(group.id, SHOWN, live);
  const all = paths.lettersBy(`group:${group.id}`);
  return (
    <Section flush title={text.letters.title} more={group.total > 0 && <Link to={all}>{text.letters.all(group.total)}</Link>}>
      <DataState query={query} lines={SHOWN} isEmpty={({ items }) => items.length === 0} empty={<EmptyState title={text.trace.none} />}>
        {({ items }) => (
          <table className={table.table}>
            <thead>
              <tr>
                <th scope="col">{letters.columns.error}</th>
                <th scope="col">{letters.columns.status}</th>
                <th scope="col" className={table.number}>
                  {letters.columns.attempts}
                </th>
                <th scope="col" className={table.number}>
                  {letters.columns.when}
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((letter) => (
                <tr key={letter.id}>
                  <td className={`${table.main ?? ''} ${classes.text ?? ''}`}>
                    <Link to={paths.letter(letter.id)} className={classes.link}>
                      <Untrusted text={letter.text === '' ? letter.type : letter.text} most={200} />
                    </Link>
                  </td>
                  <td>
                    <StatusBadge status={letter.status} />
                  </td>
                  <td className={table.number} data-label={letters.columns.attempts}>
                    {letter.attempts}
                  </td>
                  <td className={table.number}>
                    <Instant at={letter.created_at} brief />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </DataState>
    </Section>
  );
}
