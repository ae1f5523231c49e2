import { useFormat, useText } from '@/locales/language';
import { known } from '@/shared/known';
import { Untrusted } from '@/shared/Untrusted';
import classes from './OutcomeBar.module.css';

const ORDER = ['confirmed', 'assumed', 'resolved', 'under way', 'came back', 'refused', 'unclaimed'];
const CLASS: Record<string, string | undefined> = {
  confirmed: classes.confirmed,
  assumed: classes.assumed,
  resolved: classes.byHand,
  'under way': classes.underWay,
  'came back': classes.cameBack,
  refused: classes.refused,
};

/** In a fixed order; what is not known here comes last. */
export function sorted(outcomes: Readonly<Record<string, number>>): [string, number][] {
  const place = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return Object.entries(outcomes)
    .filter(([, count]) => count > 0)
    .sort(([one], [other]) => place(one) - place(other));
}

/** How redrives ended: their shares as a bar, their numbers as words. */
export function OutcomeBar({ outcomes }: { outcomes: Readonly<Record<string, number>> }) {
  const { overview } = useText();
  const format = useFormat();
  const all = sorted(outcomes);
  const total = all.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return null;
  return (
    <div>
      <div className={classes.bar} aria-hidden>
        {all.map(([name, count]) => (
          <span key={name} className={known(CLASS, name) ?? classes.other} style={{ flexGrow: count }} />
        ))}
      </div>
      <ul className={classes.words}>
        {all.map(([name, count]) => (
          <li key={name}>
            <span className={`${classes.dot ?? ''} ${known(CLASS, name) ?? classes.other ?? ''}`} aria-hidden />
            <b>{format.number(count)}</b> <Untrusted text={known(overview.outcomes, name) ?? name} most={60} />
          </li>
        ))}
      </ul>
    </div>
  );
}
