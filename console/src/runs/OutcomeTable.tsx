import { Link } from 'react-router';
import type { LetterOutcome } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Instant } from '@/shared/Instant';
import { known } from '@/shared/known';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
import page from './run-page.module.css';

const TONES: Record<string, string> = { 'came back': 'back', confirmed: 'good', assumed: 'good', refused: 'bad' };

export function OutcomeTable({ items }: { items: readonly LetterOutcome[] }) {
  const { runs } = useText();
  const text = runs.outcomes;
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">{text.letter}</th>
          <th scope="col">{text.outcome}</th>
          <th scope="col">{text.queue}</th>
          <th scope="col">{text.group}</th>
          <th scope="col" className={table.number}>
            {text.sent}
          </th>
          <th scope="col" className={table.number}>
            {text.after}
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((each) => (
          <OutcomeRow key={each.redrive_id} outcome={each} />
        ))}
      </tbody>
    </table>
  );
}

function OutcomeRow({ outcome: each }: { outcome: LetterOutcome }) {
  const { runs } = useText();
  const text = runs.outcomes;
  return (
    <tr>
      <td>
        <Link to={paths.letter(each.letter_id)} className="rd-mono">
          <Untrusted text={each.letter_id.slice(0, 13)} />
        </Link>
      </td>
      <td>
        <span className={page.outcome} data-tone={known(TONES, each.outcome)}>
          <Untrusted text={known(text.words, each.outcome) ?? each.outcome} most={60} />
        </span>
      </td>
      <td>
        <Untrusted mono text={each.queue} most={60} />
      </td>
      <td>
        {each.group_after !== null && (
          <Link to={paths.group(each.group_after)}>
            <Untrusted mono text={each.group_after.slice(0, 8)} />
            {each.group_after !== each.group_before && <span className={page.newGroup}>{text.newGroup}</span>}
          </Link>
        )}
      </td>
      <td className={table.number} data-label={text.sent}>
        {each.sent_at === null ? '–' : <Instant at={each.sent_at} brief />}
      </td>
      <td className={table.number} data-label={text.after}>
        {each.outcome_at === null ? '–' : <Instant at={each.outcome_at} brief />}
      </td>
    </tr>
  );
}
