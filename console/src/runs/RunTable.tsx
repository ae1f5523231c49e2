import { Link } from 'react-router';
import type { RunJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Instant } from '@/shared/Instant';
import { StatusBadge } from '@/shared/StatusBadge';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
import { useVisibleRow } from '@/shared/useCursor';
import { ProgressBar } from './ProgressBar';
import { cameBack } from './run-figures';
import { RunWhat } from './RunWhat';
import classes from './runs.module.css';

export function RunTable({ items, at }: { items: readonly RunJson[]; at: number }) {
  const { runs } = useText();
  const { columns } = runs;
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">{columns.status}</th>
          <th scope="col">{columns.what}</th>
          <th scope="col">{columns.progress}</th>
          <th scope="col">{columns.canary}</th>
          <th scope="col" className={table.number}>
            {columns.rate}
          </th>
          <th scope="col">{columns.by}</th>
          <th scope="col" className={table.number}>
            {columns.age}
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((run, row) => (
          <RunRow key={run.id} run={run} chosen={row === at} />
        ))}
      </tbody>
    </table>
  );
}

function RunRow({ run, chosen }: { run: RunJson; chosen: boolean }) {
  const { runs } = useText();
  const format = useFormat();
  const ref = useVisibleRow(chosen);
  return (
    <tr ref={ref} data-chosen={chosen || undefined}>
      <td>
        <StatusBadge status={run.status} />
      </td>
      <td className={table.main}>
        <Link to={paths.run(run.id)} className={table.link}>
          <RunWhat run={run} />
          {(run.reason !== '' || stopped(run)) && (
            <span className={table.clamp}>
              <Untrusted text={stopped(run) ? run.why : run.reason} most={200} />
            </span>
          )}
        </Link>
      </td>
      <td className={classes.progressCell}>
        <ProgressBar run={run} />
        <span className={classes.small}>
          {runs.progress.sent(format.number(run.progress.sent), format.number(run.total))}
          {cameBack(run) > 0 && (
            <span className={classes.back}>
              {' '}
              · {format.number(cameBack(run))} {runs.outcomes.back.toLowerCase()}
            </span>
          )}
        </span>
      </td>
      <td data-label={runs.columns.canary}>
        <CanaryBrief run={run} />
      </td>
      <td className={table.number} data-label={runs.columns.rate}>
        {run.rate === null ? <span className={table.dim}>–</span> : runs.perSecond(format.number(run.rate))}
      </td>
      <td className={classes.by}>
        <Untrusted text={run.requested_by} most={60} />
      </td>
      <td className={table.number} data-label={runs.columns.age}>
        <Instant at={run.created_at} brief />
      </td>
    </tr>
  );
}

const stopped = (run: RunJson) => run.why !== '' && ['STOPPED', 'PAUSED', 'FAILED'].includes(run.status);

export function CanaryBrief({ run }: { run: RunJson }) {
  const { runs } = useText();
  const text = runs.canary;
  const of = run.canary.steps.length;
  if (of === 0) return <span className={`${table.dim ?? ''} ${classes.none ?? ''}`}>–</span>;
  if (run.stage >= of) return <span>{text.passed}</span>;
  if (run.status === 'STOPPED') return <span className={classes.back}>{text.stopped}</span>;
  return <span>{text.brief(run.stage + 1, of)}</span>;
}
