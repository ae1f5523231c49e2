import { Link } from 'react-router';
import type { LoadedSettings } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Count } from '@/shared/Count';
import { Duration } from '@/shared/Duration';
import { Heads } from '@/shared/Heads';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
import { Section } from './Section';
import classes from './Settings.module.css';

type Rule = LoadedSettings['rules'][number];

export function Rules({ rules, partial }: { rules: readonly Rule[]; partial: boolean }) {
  const { loaded } = useText().settings;
  const { rules: text } = loaded;
  return (
    <Section title={text.title} flush>
      {rules.length === 0 ? (
        <p className={`${classes.note ?? ''} rd-dim`}>{partial ? loaded.partial : text.none}</p>
      ) : (
        <table className={`${table.table ?? ''} ${classes.even ?? ''}`}>
          <Heads columns={text.columns} />
          <tbody>
            {rules.map((rule) => (
              <RuleRow key={rule.name} rule={rule} />
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}

function Pace({ of, none }: { of: number | null; none: string }) {
  const { rules: text } = useText().settings.loaded;
  const format = useFormat();
  return of === null ? <span className="rd-dim">{none}</span> : <>{text.pace(format.number(of))}</>;
}

function RuleRow({ rule }: { rule: Rule }) {
  const { rules: text } = useText().settings.loaded;
  const { columns } = text;
  return (
    <tr className={rule.enabled ? undefined : classes.ended}>
      <td className={`${table.strong ?? ''} ${classes.called ?? ''}`}>
        <Untrusted text={rule.name} most={100} />
      </td>
      <td className={table.main}>
        <Link to={paths.lettersBy(rule.when)}>
          <Untrusted mono text={rule.when} most={500} />
        </Link>
      </td>
      <td data-label={columns.wait}>
        <Duration seconds={rule.wait} />
      </td>
      <td data-label={columns.atMost}>
        <Count of={rule.at_most} />
      </td>
      <td data-label={columns.rate}>
        <Pace of={rule.rate} none={text.unlimited} />
      </td>
      <td data-label={columns.window}>
        {rule.window === null ? (
          <span className="rd-dim">{text.always}</span>
        ) : (
          <>
            <Untrusted text={rule.window} most={100} /> <span className="rd-dim">{rule.time_zone}</span>
          </>
        )}
      </td>
      <td>{rule.enabled ? text.on : text.off}</td>
    </tr>
  );
}

export function QueueRules({ queues }: { queues: LoadedSettings['queues'] }) {
  const { loaded } = useText().settings;
  const { queues: text } = loaded;
  const { columns } = text;
  const all = Object.entries(queues);
  const after = (seconds: number | null) => (seconds === null ? <span className="rd-dim">{loaded.never}</span> : <Duration seconds={seconds} />);
  return (
    <Section title={text.title} flush>
      {all.length === 0 ? (
        <p className={`${classes.note ?? ''} rd-dim`}>{text.none}</p>
      ) : (
        <table className={`${table.table ?? ''} ${classes.even ?? ''}`}>
          <Heads columns={columns} />
          <tbody>
            {all.map(([name, queue]) => (
              <tr key={name}>
                <td className={table.strong}>
                  <Untrusted mono text={name} most={120} />
                </td>
                <td data-label={columns.expire}>{after(queue.expire_after)}</td>
                <td data-label={columns.assume}>{after(queue.assume_after)}</td>
                <td data-label={columns.keep}>
                  <Duration seconds={queue.keep} />
                </td>
                <td data-label={columns.keepDiscarded}>
                  <Duration seconds={queue.keep_discarded} />
                </td>
                <td data-label={columns.rate}>
                  <Pace of={queue.redrive_rate} none={text.usual} />
                </td>
                <td data-label={columns.ordered}>
                  {queue.ordered_by === null ? <span className="rd-dim">{text.unordered}</span> : <Untrusted mono text={queue.ordered_by} most={200} />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}
