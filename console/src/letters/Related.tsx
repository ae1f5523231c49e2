import { Link } from 'react-router';
import { useRelated } from '@/api/letter-parts';
import type { Letter, LetterLine } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { written } from '@/shared/filter-completion';
import { Instant } from '@/shared/Instant';
import { shortType } from '@/shared/short-type';
import { StatusBadge } from '@/shared/StatusBadge';
import { Untrusted } from '@/shared/Untrusted';
import table from '@/shared/table.module.css';
import { useCorrelation } from './Facts';
import classes from './LetterPage.module.css';
import rows from './LetterTable.module.css';

/** Letters of the same story, by the correlation id, and those of the same cause. */
export function Related({ letter }: { letter: Letter }) {
  const { letters: text } = useText();
  const query = useRelated(letter.id);
  const correlation = useCorrelation(letter);
  const none = correlation === null ? text.related.noId : text.related.none;
  return (
    <>
      <p className={classes.relatedHead}>
        {correlation !== null && (
          <span>
            {text.related.by} <Untrusted mono text={correlation} most={120} />
          </span>
        )}
        <span className={classes.relatedLinks}>
          {correlation !== null && <Link to={paths.lettersBy(`correlation:${written(correlation)}`)}>{text.related.all}</Link>}
          <Link to={paths.lettersBy(`group:${written(letter.group_id)}`)}>{text.related.group}</Link>
          <Link to={paths.group(letter.group_id)}>{text.related.openGroup}</Link>
        </span>
      </p>
      <DataState query={query} isEmpty={(data) => data.items.length === 0} empty={<EmptyState title={none.title} what={none.what} />}>
        {(data) => <RelatedTable lines={data.items} />}
      </DataState>
    </>
  );
}

function RelatedTable({ lines }: { lines: readonly LetterLine[] }) {
  const { letters: text } = useText();
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">{text.columns.error}</th>
          <th scope="col">{text.columns.status}</th>
          <th scope="col">{text.columns.queue}</th>
          <th scope="col" className={table.number}>
            {text.columns.when}
          </th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <tr key={line.id}>
            <td className={table.main}>
              <Link to={paths.letter(line.id)} className={table.link}>
                <span className={table.strong}>
                  <Untrusted text={shortType(line.type)} most={120} />
                </span>
                <span className={table.clamp}>
                  <Untrusted text={line.text} most={300} />
                </span>
              </Link>
            </td>
            <td>
              <StatusBadge status={line.status} />
            </td>
            <td className={rows.cell}>
              <Untrusted mono text={line.queue} most={80} />
            </td>
            <td className={table.number}>
              <Instant at={line.created_at} brief />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
