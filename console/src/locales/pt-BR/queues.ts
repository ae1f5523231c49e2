import type { queues as en } from '../en/queues';
import { pluralIn } from '../plural';

const plural = pluralIn('pt-BR');

export const queues: typeof en = {
  title: 'Filas',
  columns: {
    name: 'Fila',
    letters: 'Mensagens mortas',
    ready: 'Prontas',
    delayed: 'Adiadas',
    unacked: 'Em trabalho',
    consumers: 'Consumidores',
    rate: 'Entrada / saída por segundo',
    health: 'Saúde',
    links: 'Mostrar',
  },
  about: (queues) => plural(queues, { one: '# fila', other: '# filas' }),
  find: 'Achar uma fila pelo nome',
  letters: 'Mensagens',
  groups: 'Grupos',
  lettersOf: (name) => `Mensagens de ${name}`,
  groupsOf: (name) => `Grupos de ${name}`,
  health: {
    idle: 'Sem consumidor',
    idleWhat: 'Há mensagens esperando e ninguém consome a fila: inicie o worker dela.',
    growing: 'Crescendo',
    growingWhat: 'Entra mais do que sai.',
    retrying: 'Tentando de novo',
    retryingWhat: (count) => `${count} esperam a próxima tentativa.`,
    well: 'Nada a cuidar',
    unknown: 'Desconhecida',
  },
  unknown: 'O broker não informa',
  noConsumer: 'Ninguém consome',
  incomplete: 'Isto pode não ser tudo:',
  noMatch: { title: 'Nenhuma fila tem isso no nome', what: 'Retire algo para ver mais.' },
  empty: { title: 'Ainda não há filas', what: 'Elas aparecem assim que um worker ou um produtor usar uma.' },
};
