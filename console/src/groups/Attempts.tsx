import { useGroupAttempts, type GroupAttempts } from '@/api/insights';
import { useFormat, useText } from '@/locales/language';
import { DataState } from '@/shared/DataState';
import { known } from '@/shared/known';
import { Section } from '@/shared/Section';
import { visible } from '@/shared/untrusted';
import classes from './Attempts.module.css';

interface Line {
  attempt: number;
  failed: number;
  kinds: [string, number][];
}

export function linesOf(attempts: GroupAttempts['attempts']): Line[] {
  const lines = new Map<number, Line>();
  for (const { attempt, kind, failed } of attempts) {
    const line = lines.get(attempt) ?? { attempt, failed: 0, kinds: [] };
    line.failed += failed;
    line.kinds.push([kind, failed]);
    lines.set(attempt, line);
  }
  return [...lines.values()];
}

/** Which attempts failed: whether it never works, or not any more. */
export function Attempts({ id }: { id: string }) {
  const { attempts: text } = useText().groups;
  const format = useFormat();
  const query = useGroupAttempts(id);
  const number = query.data?.letters ?? 0;
  const kindOf = (kind: string) => visible(known(text.kinds, kind) ?? kind);
  return (
    <Section title={text.title} aside={number > 0 && text.what(number)}>
      <DataState query={query} lines={3} isEmpty={(data) => data.attempts.length === 0} empty={<p className="rd-dim">{text.none}</p>}>
        {(data) => (
          <ul className={classes.list}>
            {linesOf(data.attempts).map(({ attempt, failed, kinds }) => (
              <li key={attempt} className={classes.line}>
                <span>{text.attempt(attempt)}</span>
                <span className={classes.track} aria-hidden>
                  <span className={classes.bar} style={{ width: `${Math.min(100, (failed / Math.max(1, data.letters)) * 100)}%` }} />
                </span>
                <span className={classes.count}>{format.number(failed)}</span>
                <span className={classes.kinds}>
                  {kinds.length === 1 ? kindOf(kinds[0]?.[0] ?? '') : kinds.map(([kind, count]) => `${format.number(count)} ${kindOf(kind)}`).join(', ')}
                </span>
              </li>
            ))}
          </ul>
        )}
      </DataState>
    </Section>
  );
}
