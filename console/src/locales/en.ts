import { alerts } from './en/alerts';
import { audit } from './en/audit';
import { doctor } from './en/doctor';
import { groups } from './en/groups';
import { letters } from './en/letters';
import { overview } from './en/overview';
import { queues } from './en/queues';
import { runs } from './en/runs';
import { settings } from './en/settings';
import { shared } from './en/shared';
import { shell } from './en/shell';
import { signIn } from './en/signIn';

/** Every text of the console, by noun. */
export const en = { alerts, audit, doctor, groups, letters, overview, queues, runs, settings, shared, shell, signIn };
