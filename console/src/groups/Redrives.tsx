import { Link } from 'react-router';
import { useGroupRedrives, type GroupRun } from '@/api/insights';
import { useFormat, useText } from '@/locales/language';
import { OutcomeBar } from '@/overview/OutcomeBar';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { Instant } from '@/shared/Instant';
import { visible } from '@/shared/untrusted';
import { Section } from '@/shared/Section';
import classes from './Redrives.module.css';

const WELL = ['confirmed', 'assumed', 'resolved'];
const ENDED = [...WELL, 'came back', 'refused'];

/** The share of what has ended that ended well; null: nothing has. */
export function successOf(runs: readonly Pick<GroupRun, 'outcomes'>[]): number | null {
  const sum = (names: readonly string[]) =>
    runs.reduce((all, { outcomes }) => all + names.reduce((part, name) => part + (outcomes[name] ?? 0), 0), 0);
  const ended = sum(ENDED);
  return ended === 0 ? null : sum(WELL) / ended;
}

/** What became of this group when it was sent back: whether it is worth doing again. */
export function Redrives({ id, live }: { id: string; live: number | false }) {
  const { redrives: text } = useText().groups;
  const format = useFormat();
  const query = useGroupRedrives(id, live);
  const runs = query.data?.runs ?? [];
  const success = successOf(runs);
  return (
    <Section title={text.title} more={success !== null && text.well(format.percent(success))}>
      <DataState query={query} lines={3} isEmpty={(data) => data.runs.length === 0} empty={<p className={classes.none}>{text.none}</p>}>
        {(data) => (
          <>
            <ul className={classes.list}>
              {data.runs.map((run) => (
                <RunLine key={run.run_id ?? 'single'} run={run} />
              ))}
            </ul>
            <p className={classes.of}>{text.what(data.letters)}</p>
          </>
        )}
      </DataState>
    </Section>
  );
}

function RunLine({ run }: { run: GroupRun }) {
  const { redrives: text } = useText().groups;
  return (
    <li className={classes.run}>
      <div className={classes.head}>
        {run.run_id === null ? text.single : <Link to={paths.run(run.run_id)}>{text.run}</Link>}
        {run.by !== '' && <span className="rd-dim">{text.by(visible(run.by).slice(0, 60))}</span>}
        <span className={classes.when}>
          <Instant at={run.last_at} />
        </span>
      </div>
      <OutcomeBar outcomes={run.outcomes} />
    </li>
  );
}
