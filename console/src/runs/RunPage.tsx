import { Link, useParams } from 'react-router';
import type { RunDetail } from '@/api/runs';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { CopyButton } from '@/shared/CopyButton';
import { DataState } from '@/shared/DataState';
import { PageHeader } from '@/shared/PageHeader';
import { StatusBadge } from '@/shared/StatusBadge';
import { visible } from '@/shared/untrusted';
import { ApprovalPanel } from './ApprovalPanel';
import { CanaryPanel } from './CanaryPanel';
import { DoubtPanel } from './DoubtPanel';
import { Outcomes } from './Outcomes';
import { ProgressPanel } from './ProgressPanel';
import { RunActions } from './RunActions';
import { RunHistory } from './RunHistory';
import { RunPlan } from './RunPlan';
import { Unsent } from './Unsent';
import { useLiveRun, type Freshness } from './useLiveRun';
import { WhyNote } from './WhyNote';
import page from './run-page.module.css';

/** One run: how far it is, what became of its letters, and what can be done about it. */
export function RunPage() {
  const { id = '' } = useParams();
  const { runs } = useText();
  const { query, freshness } = useLiveRun(id);
  const run = query.data?.run;
  const short = visible((run?.id ?? id).slice(0, 13));
  return (
    <>
      <PageHeader
        above={<Link to={paths.runs}>{runs.title}</Link>}
        title={<span className="rd-mono">{runs.run(short)}</span>}
        tab={runs.run(short)}
        aside={
          run !== undefined && (
            <span className={page.aside}>
              <StatusBadge status={run.status} /> <CopyButton value={run.id} />
            </span>
          )
        }
        actions={run !== undefined && <RunActions run={run} />}
      />
      <DataState query={query} lines={10}>
        {(detail) => <Detail detail={detail} freshness={freshness} />}
      </DataState>
    </>
  );
}

function Detail({ detail: { run, history }, freshness }: { detail: RunDetail; freshness: Freshness }) {
  return (
    <div className={page.stack}>
      <ApprovalPanel run={run} />
      <WhyNote run={run} />
      <DoubtPanel run={run} />
      <ProgressPanel run={run} freshness={freshness} />
      <CanaryPanel run={run} />
      <div className={page.columns}>
        <div className={page.stack}>
          <Outcomes run={run} />
          <Unsent run={run} />
        </div>
        <div className={page.stack}>
          <RunPlan run={run} />
          <RunHistory history={history} />
        </div>
      </div>
    </div>
  );
}
