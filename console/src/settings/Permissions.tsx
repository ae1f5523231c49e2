import { useServerSettings } from '@/api/settings';
import { useText } from '@/locales/language';
import { useCan, useSession } from '@/shared/session';
import table from '@/shared/table.module.css';
import { Had } from './Roles';
import { Section } from './Section';
import classes from './Settings.module.css';

/** What each permission means, whether I have it and for which queues, and which roles would give it. */
export function Permissions() {
  const { permissions: text } = useText().settings;
  const me = useSession();
  const { data } = useServerSettings(useCan()('letters:read'));
  const givenBy = (permission: string) =>
    Object.entries(data?.roles ?? {})
      .filter(([, allowed]) => (allowed as string[]).includes(permission))
      .map(([role]) => role);
  return (
    <Section title={text.title} flush>
      <table className={`${table.table ?? ''} ${classes.even ?? ''}`}>
        <thead>
          <tr>
            <th scope="col">{text.permission}</th>
            <th scope="col">{text.means}</th>
            <th scope="col">{text.you}</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(text.meanings).map(([permission, meaning]) => {
            const roles = givenBy(permission);
            return (
              <tr key={permission}>
                <td className={classes.nowrap}>
                  <span className="rd-mono">{permission}</span>
                </td>
                <td className={table.main}>{meaning}</td>
                <td>
                  <Had
                    queues={me.permissions[permission] ?? []}
                    lack={roles.length === 0 ? text.lack : `${text.lack}: ${text.givenBy(roles.join(', '))}`}
                  />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Section>
  );
}
