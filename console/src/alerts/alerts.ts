import type { Alert } from '@/api/types';
import { paths } from '@/routes/paths';

export type Severity = Alert['severity'];

/** The worst first. */
export const SEVERITIES = ['critical', 'error', 'warning', 'info'] as const satisfies readonly Severity[];

/** Milliseconds after which the pages ask again. */
export const EVERY = 10_000;

/** For how long one can be snoozed, as the API takes it. */
export const WAITS = ['1h', '4h', '1d', '1w'] as const;
export type Wait = (typeof WAITS)[number];

export const isFiring = (alert: Alert) => alert.status === 'FIRING';

export const isSnoozed = (alert: Alert, now: number) => alert.snoozed_until !== null && Date.parse(alert.snoozed_until) > now;

/** What is firing, the worst first and then the newest: numbers that change move no row away from under a pointer. */
export function firingOf(alerts: readonly Alert[]): Alert[] {
  return alerts.filter(isFiring).sort((one, other) => rank(one) - rank(other) || moment(other.since) - moment(one.since));
}

/** What is over, the last end first. */
export function overOf(alerts: readonly Alert[]): Alert[] {
  return alerts.filter((each) => !isFiring(each)).sort((one, other) => moment(other.ended_at) - moment(one.ended_at));
}

/** Null: nothing is firing. */
export const worstOf = (alerts: readonly Alert[]): Severity | null => firingOf(alerts)[0]?.severity ?? null;

const rank = ({ severity }: Alert) => SEVERITIES.indexOf(severity);
const moment = (at: string | null) => (at === null ? 0 : Date.parse(at));

/** The page that shows what it is about, which is one of ours whatever the store says. */
export const pageOf = ({ path }: Alert) => (/^\/(?![/\\])/.test(path) ? path : paths.overview);

/** Of the link that names it, to which the focus goes when what was done about it has taken its button away. */
export const linkId = ({ id }: Alert) => `alert-${id}`;
