import { Link } from 'react-router';
import type { AlertDeed } from '@/api/alerts';
import type { Alert } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { Count } from '@/shared/Count';
import { Heads } from '@/shared/Heads';
import { Instant } from '@/shared/Instant';
import { known } from '@/shared/known';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
import { useVisibleRow } from '@/shared/useCursor';
import { AlertActions } from './AlertActions';
import { AlertState } from './AlertState';
import { isFiring, linkId, pageOf } from './alerts';
import { SeverityBadge } from './SeverityBadge';
import classes from './alerts.module.css';

interface Props {
  /** All of them firing, or all of them over. */
  alerts: readonly Alert[];
  over?: boolean;
  /** The row that keys have chosen; -1: none. */
  at?: number;
  onAsk: (alert: Alert, deed: AlertDeed) => void;
}

export function AlertTable({ alerts, over = false, at = -1, onAsk }: Props) {
  const { severity, what, since, ended, state, actions } = useText().alerts.columns;
  return (
    <table className={`${table.table ?? ''} ${classes.table ?? ''}`}>
      <Heads columns={{ severity, what, when: over ? ended : since, state }} unseen={actions} />
      <tbody>
        {alerts.map((alert, row) => (
          <AlertRow key={alert.id} alert={alert} chosen={row === at} onAsk={(deed) => onAsk(alert, deed)} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  alert: Alert;
  chosen: boolean;
  onAsk: (deed: AlertDeed) => void;
}

function AlertRow({ alert, chosen, onAsk }: RowProps) {
  const { columns } = useText().alerts;
  const ref = useVisibleRow(chosen);
  return (
    <tr ref={ref} data-chosen={chosen || undefined}>
      <td className={classes.severity}>
        <SeverityBadge severity={alert.severity} over={!isFiring(alert)} />
      </td>
      <td className={`${table.main ?? ''} ${classes.what ?? ''}`}>
        <Link to={pageOf(alert)} id={linkId(alert)} className={classes.link}>
          <Untrusted text={alert.title} most={200} />
        </Link>
        <Facts alert={alert} />
      </td>
      <td className={classes.when} data-label={alert.ended_at === null ? columns.since : columns.ended}>
        <When alert={alert} />
      </td>
      <td className={classes.state}>
        <AlertState alert={alert} />
      </td>
      <td className={classes.actions}>
        <AlertActions alert={alert} onAsk={onAsk} />
      </td>
    </tr>
  );
}

/** Where it is, how many, and which rule says so. */
function Facts({ alert: { queue, counts, rule } }: { alert: Alert }) {
  const { alerts: text } = useText();
  return (
    <span className={classes.facts}>
      {queue !== '' && <Untrusted mono text={queue} most={60} />}
      {Object.entries(counts).map(([name, number]) => (
        <span key={name}>
          {known(text.counts, name) ?? <Untrusted text={name} most={40} />}{' '}
          <strong className={classes.number}>
            <Count of={number} />
          </strong>
        </span>
      ))}
      <span>
        {text.rule} <Untrusted mono text={rule} most={60} />
      </span>
    </span>
  );
}

function When({ alert: { since, ended_at: ended } }: { alert: Alert }) {
  const { alerts: text } = useText();
  const format = useFormat();
  if (ended === null) return <Instant at={since} brief />;
  const lasted = Math.max(1, (Date.parse(ended) - Date.parse(since)) / 1000);
  return (
    <>
      <Instant at={ended} brief /> <span className={classes.lasted}>{text.lasted(format.duration(lasted))}</span>
    </>
  );
}
