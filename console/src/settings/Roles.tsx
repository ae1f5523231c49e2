import { IconCheck, IconMinus } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { useServerSettings } from '@/api/settings';
import { useText } from '@/locales/language';
import { DataState } from '@/shared/DataState';
import { useCan, useSession } from '@/shared/session';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
import { Section } from './Section';
import classes from './Settings.module.css';

/** Whether one has something, and for which queues: by word and shape. */
export function Had({ queues, lack }: { queues: readonly string[]; lack: ReactNode }) {
  const { settings: text } = useText();
  if (queues.length === 0) {
    return (
      <span className={classes.lack}>
        <IconMinus size={14} aria-hidden />
        <span>{lack}</span>
      </span>
    );
  }
  return (
    <span className={classes.have}>
      <IconCheck size={14} stroke={2.4} aria-hidden />
      <span>{queues.includes('*') ? text.everyQueue : <Untrusted text={queues.join(', ')} most={300} />}</span>
    </span>
  );
}

/** Every role there is: which ones I have and for which queues, which ones I lack, and what each allows. */
export function Roles() {
  const { settings } = useText();
  const { roles: text } = settings;
  const known = useCan()('letters:read');
  const query = useServerSettings(known);
  return (
    <Section title={text.title} intro={text.intro} flush>
      {known ? (
        <DataState query={query}>{({ roles }) => <RoleTable roles={roles} />}</DataState>
      ) : (
        <p className={`${classes.note ?? ''} rd-dim`}>{text.unknown}</p>
      )}
    </Section>
  );
}

function RoleTable({ roles }: { roles: Record<string, string[]> }) {
  const { roles: text } = useText().settings;
  const me = useSession();
  return (
    <table className={`${table.table ?? ''} ${classes.even ?? ''}`}>
      <thead>
        <tr>
          <th scope="col">{text.role}</th>
          <th scope="col">{text.has}</th>
          <th scope="col">{text.allows}</th>
        </tr>
      </thead>
      <tbody>
        {Object.entries(roles).map(([role, permissions]) => (
          <tr key={role}>
            <td className={table.strong}>{role}</td>
            <td className={classes.nowrap}>
              <Had queues={me.grants.filter((each) => each.role === role).flatMap((each) => each.queues)} lack={text.lack} />
            </td>
            <td className={table.main}>
              <span className={classes.allows}>
                {permissions.map((each) => (
                  <span key={each} className="rd-mono">
                    {each}
                  </span>
                ))}
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
