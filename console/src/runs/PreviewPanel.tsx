import { Skeleton } from '@mantine/core';
import type { PreviewJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { Instant } from '@/shared/Instant';
import { ProblemNote } from '@/shared/ProblemNote';
import { Untrusted } from '@/shared/Untrusted';
import { Checks } from './Checks';
import { Samples } from './Samples';
import classes from './dialogs.module.css';

interface Props {
  query: { error: unknown; refetch: () => unknown };
  shown: PreviewJson | undefined;
  /** Whether what is shown answers to what is chosen now. */
  current: boolean;
  selected: number | undefined;
  /** The true number, once it was counted. */
  exact: number | undefined;
}

/** What the run would send, and what speaks against it. */
export function PreviewPanel({ query, shown, current, selected, exact }: Props) {
  const { runs } = useText();
  const text = runs.redrive;
  const format = useFormat();
  if (query.error !== null) return <ProblemNote error={query.error} onRetry={() => void query.refetch()} />;
  if (shown === undefined) {
    return (
      <div role="status" aria-label={text.counting}>
        <Skeleton height={30} width={180} mb={14} />
        <Skeleton height={160} />
      </div>
    );
  }
  const elsewhere = Object.keys(shown.by_target).some((each) => !Object.hasOwn(shown.by_queue, each));
  const known = shown.exact ? shown.count : exact;
  const headline = known === undefined ? text.atLeast(format.number(shown.count)) : text.exactly(known);
  return (
    <section className={classes.preview} data-old={current ? undefined : true} aria-busy={!current} aria-label={text.what}>
      <h3 className={classes.heading}>{text.what}</h3>
      <p className={classes.headline}>
        {headline} {selected !== undefined && known !== undefined && selected !== known && <small className="rd-dim">{text.ofSelected(selected)}</small>}
      </p>
      {shown.oldest !== null && (
        <p className={classes.span}>
          {text.span} <Instant at={shown.oldest} />
          {shown.newest !== null && Date.parse(shown.newest) - Date.parse(shown.oldest) > MINUTE && (
            <>
              {' '}
              {text.to} <Instant at={shown.newest} />
            </>
          )}
        </p>
      )}
      <Checks checks={shown.checks} />
      <Samples samples={shown.samples} />
      <Shares title={text.byQueue} rows={Object.entries(shown.by_queue)} mono />
      {elsewhere && <Shares title={text.byTarget} rows={Object.entries(shown.by_target)} mono />}
      <Shares
        title={text.byGroup}
        rows={shown.by_group.map((each) => [each.title, each.count])}
        more={shown.groups > MOST ? text.moreGroups(shown.groups - Math.min(MOST, shown.by_group.length)) : undefined}
      />
      {shown.spread_over < shown.count && <p className={classes.note}>{text.spread(format.number(shown.spread_over))}</p>}
    </section>
  );
}

const MOST = 5;
const MINUTE = 60_000;

interface SharesProps {
  title: string;
  rows: [string, number][];
  mono?: boolean;
  more?: string | undefined;
}

function Shares({ title, rows, mono = false, more }: SharesProps) {
  const format = useFormat();
  if (rows.length === 0) return null;
  return (
    <>
      <h4 className={classes.subheading}>{title}</h4>
      <ul className={classes.shares}>
        {rows.slice(0, MOST).map(([name, count], at) => (
          <li key={at}>
            <span className={classes.shareName}>
              <Untrusted text={name} most={160} mono={mono} />
            </span>
            <span>{format.number(count)}</span>
          </li>
        ))}
      </ul>
      {more !== undefined && <p className={classes.note}>{more}</p>}
    </>
  );
}
