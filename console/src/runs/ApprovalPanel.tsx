import { IconEyeCheck } from '@tabler/icons-react';
import type { RunJson } from '@/api/types';
import { useText } from '@/locales/language';
import { Instant } from '@/shared/Instant';
import { useSession } from '@/shared/session';
import { Untrusted } from '@/shared/Untrusted';
import { samePerson } from './people';
import page from './run-page.module.css';

/** Which rule asks for a second person, until when, and who that may be. */
export function ApprovalPanel({ run }: { run: RunJson }) {
  const { runs } = useText();
  const text = runs.approval;
  const me = useSession();
  if (run.status !== 'AWAITING_APPROVAL' || run.approval === null) return null;
  return (
    <section className={page.approval} aria-label={text.title}>
      <IconEyeCheck size={20} stroke={1.7} aria-hidden />
      <div>
        <p>
          <strong>{text.title}</strong>
        </p>
        <p>
          {text.why}: <Untrusted text={run.approval.why} most={400} />. {text.expires} <Instant at={run.approval.expires_at} />.
        </p>
        <p className="rd-dim">
          {samePerson(run.requested_by, me.name) ? `${runs.actions.own}. ` : ''}
          {text.who} {text.binds}
        </p>
      </div>
    </section>
  );
}
