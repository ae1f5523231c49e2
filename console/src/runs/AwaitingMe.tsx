import { Button } from '@mantine/core';
import { IconEyeCheck } from '@tabler/icons-react';
import { Link } from 'react-router';
import { useApprovals } from '@/api/runs';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Instant } from '@/shared/Instant';
import { useLiveEvery } from '@/shared/live';
import { useCan } from '@/shared/session';
import { Untrusted } from '@/shared/Untrusted';
import { RunWhat } from './RunWhat';
import classes from './runs.module.css';

/** Runs of somebody else's that I may approve. */
export function AwaitingMe() {
  return useCan()('runs:approve') ? <Awaiting /> : null;
}

function Awaiting() {
  const { runs } = useText();
  const query = useApprovals(50, useLiveEvery(10_000));
  const waiting = query.data?.items ?? [];
  if (waiting.length === 0) return null;
  return (
    <section className={classes.awaiting} aria-label={runs.mine(waiting.length)}>
      <h2>
        <IconEyeCheck size={17} stroke={1.8} aria-hidden /> {runs.mine(waiting.length)}
      </h2>
      <ul>
        {waiting.map((run) => (
          <li key={run.id}>
            <div className={classes.awaitingWhat}>
              <RunWhat run={run} />
              <p className="rd-dim">
                {runs.approval.asked} <Untrusted text={run.requested_by} most={80} />, <Instant at={run.created_at} />
                {run.reason !== '' && (
                  <>
                    : <Untrusted text={run.reason} most={200} />
                  </>
                )}
              </p>
            </div>
            <Button component={Link} to={paths.run(run.id)}>
              {runs.look}
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}
