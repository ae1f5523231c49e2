import { IconAlertTriangle, IconBan, IconPlayerPause } from '@tabler/icons-react';
import type { RunJson } from '@/api/types';
import { useText } from '@/locales/language';
import { Instant } from '@/shared/Instant';
import { Untrusted } from '@/shared/Untrusted';
import page from './run-page.module.css';

const SHAPES = { PAUSED: IconPlayerPause, STOPPED: IconAlertTriangle, FAILED: IconAlertTriangle, CANCELLED: IconBan };

/** Why a run does not go on, and what that means for its letters. */
export function WhyNote({ run }: { run: RunJson }) {
  const { runs } = useText();
  const { status } = run;
  if (status !== 'PAUSED' && status !== 'STOPPED' && status !== 'FAILED' && status !== 'CANCELLED') return null;
  const Shape = SHAPES[status];
  return (
    <div role="status" className={page.why} data-status={status}>
      <Shape size={18} stroke={1.8} aria-hidden />
      <div>
        <p>
          <strong>{runs.why[status]}</strong> <Instant at={run.ended_at ?? run.changed_at} />
          {run.why !== '' && (
            <>
              : <Untrusted text={run.why} most={600} />
            </>
          )}
        </p>
        <p className="rd-dim">{runs.why.next[status]}</p>
      </div>
    </div>
  );
}
