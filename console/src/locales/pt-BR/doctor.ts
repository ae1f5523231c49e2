import type { doctor as en } from '../en/doctor';
import { pluralIn } from '../plural';

const plural = pluralIn('pt-BR');

export const doctor: typeof en = {
  title: 'Diagnóstico',
  look: 'Examinar agora',
  looked: 'Examinado',
  kept: 'Isso foi examinado há menos de um minuto: é o que você vê.',
  running: 'Broker, armazenamento, discos e configurações estão sendo examinados. Leva no máximo meio minuto.',
  columns: { level: 'Nível', check: 'Verificação', what: 'O que foi encontrado', remedy: 'O que fazer' },
  level: { problem: 'Problema', warn: 'Aviso', unknown: 'Não verificado', ok: 'Bem' },
  counts: {
    problem: (count) => plural(count, { one: '# problema', other: '# problemas' }),
    warn: (count) => plural(count, { one: '# aviso', other: '# avisos' }),
    unknown: (count) => plural(count, { one: '# não verificado', other: '# não verificados' }),
    ok: (count) => plural(count, { one: '# bem', other: '# bem' }),
  },
  place: { broker: 'Broker', store: 'Armazenamento', disk: 'Discos', settings: 'Configurações' },
  never: {
    title: 'Ninguém examinou desde que o servidor foi iniciado',
    what: 'Um exame encontra cada lugar onde uma mensagem pode se perder, e não muda nada.',
  },
  locked: {
    title: 'O diagnóstico é para administradores',
    what: 'Ele fala de todas as filas, de servidores e de pastas: é preciso a permissão access:manage para todas as filas.',
  },
};
