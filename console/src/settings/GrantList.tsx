import type { Grant } from '@/api/types';
import { useText } from '@/locales/language';
import { Untrusted } from '@/shared/Untrusted';
import classes from './Settings.module.css';

/** Roles with the queues that they hold for. */
export function GrantList({ grants }: { grants: readonly Grant[] }) {
  const { settings: text } = useText();
  if (grants.length === 0) return <span className="rd-dim">{text.grants.none}</span>;
  return (
    <span className={classes.grants}>
      {grants.map(({ role, queues }, at) => (
        <span key={at} className={classes.grant}>
          {role}
          {!queues.includes('*') && (
            <>
              : <Untrusted text={queues.join(', ')} most={300} />
            </>
          )}
        </span>
      ))}
    </span>
  );
}
