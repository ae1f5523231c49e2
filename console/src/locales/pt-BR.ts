import { alerts } from './pt-BR/alerts';
import { audit } from './pt-BR/audit';
import { doctor } from './pt-BR/doctor';
import { groups } from './pt-BR/groups';
import { letters } from './pt-BR/letters';
import { overview } from './pt-BR/overview';
import { queues } from './pt-BR/queues';
import { runs } from './pt-BR/runs';
import { settings } from './pt-BR/settings';
import { shared } from './pt-BR/shared';
import { shell } from './pt-BR/shell';
import { signIn } from './pt-BR/signIn';
import type { Messages } from './messages';

export const ptBR: Messages = { alerts, audit, doctor, groups, letters, overview, queues, runs, settings, shared, shell, signIn };
