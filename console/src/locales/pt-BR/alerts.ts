import type { alerts as en } from '../en/alerts';
import { pluralIn } from '../plural';

const plural = pluralIn('pt-BR');

export const alerts: typeof en = {
  title: 'Alertas',
  one: 'Alerta',
  all: 'Todos os alertas',
  firing: 'Disparados',
  over: 'Encerrados',
  overKept: 'dos últimos 30 dias',
  areFiring: (count) => plural(count, { one: '# alerta disparado', other: '# alertas disparados' }),
  moreFiring: (atMost) => `Mais de ${atMost} alertas disparados`,
  cut: (count) => `Somente ${count} são listados: primeiro os disparados, depois os últimos que terminaram.`,
  columns: { severity: 'Gravidade', what: 'O quê', since: 'Desde', ended: 'Terminou', state: 'Quem cuida', actions: 'Ações' },
  severity: { critical: 'Crítico', error: 'Erro', warning: 'Aviso', info: 'Informação' },
  rule: 'Regra',
  lasted: (duration) => `depois de ${duration}`,
  state: {
    nobody: 'Ninguém ainda',
    acknowledged: 'Reconhecido por',
    resolved: 'Resolvido por',
    held: 'Dado por encerrado, embora as regras ainda o vejam',
    snoozed: 'Silenciado por',
    wakes: 'volta',
  },
  counts: {
    attempts: 'Tentativas',
    bytes: 'Bytes',
    'collectors missing': 'Coletores ausentes',
    failed: 'Falharam',
    failures: 'Falhas',
    hours: 'Horas',
    letters: 'Mensagens',
    more: 'A mais',
    open: 'Abertas',
    'per minute': 'Por minuto',
    pending: 'Pendentes',
    percent: 'Por cento',
    things: 'Coisas',
    usual: 'O usual',
    'workers missing': 'Workers ausentes',
  },
  actions: { acknowledge: 'Reconhecer', snooze: 'Silenciar', wake: 'Voltar a avisar', resolve: 'Resolver' },
  waits: { '1h': '1 hora', '4h': '4 horas', '1d': '1 dia', '1w': '1 semana' },
  asked: {
    acknowledge: {
      title: 'Reconhecer o alerta',
      what: 'Você cuida dele: ninguém mais é lembrado. O fim dele será avisado.',
      confirm: 'Reconhecer',
      done: 'O alerta foi reconhecido',
    },
    snooze: {
      title: 'Silenciar o alerta',
      what: (wait) =>
        `Nada além do fim dele é avisado por ${wait}, mesmo que recomece nesse tempo. Se ainda valer depois, é avisado de novo.`,
      confirm: (wait) => `Silenciar por ${wait}`,
      done: (wait) => `O alerta está silenciado por ${wait}`,
    },
    wake: {
      title: 'Voltar a avisar do alerta',
      what: 'Ele não está mais silenciado: as pessoas voltam a ser avisadas, já agora se ele continua.',
      confirm: 'Voltar a avisar',
      done: 'O alerta volta a ser avisado',
    },
    resolve: {
      title: 'Resolver o alerta',
      what: 'Você diz que acabou. Se as regras ainda o virem, ele só é avisado de novo depois de ter acabado por si mesmo.',
      confirm: 'Resolver',
      done: 'O alerta foi resolvido',
    },
  },
  none: {
    title: 'Nenhum alerta disparado',
    what: 'As regras olham sozinhas para mensagens mortas, grupos, execuções e processos. Nas configurações, [alerts.rules] muda o que elas procuram e [alerts.channels] diz quem é avisado: docs/alerts.md.',
  },
};
