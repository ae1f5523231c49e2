import { pluralIn } from '../plural';

const plural = pluralIn('en');

export const queues = {
  title: 'Queues',
  columns: {
    name: 'Queue',
    letters: 'Dead letters',
    ready: 'Ready',
    delayed: 'Delayed',
    unacked: 'In work',
    consumers: 'Consumers',
    rate: 'In / out per second',
    health: 'Health',
    links: 'Show',
  },
  about: (queues: number) => plural(queues, { one: '# queue', other: '# queues' }),
  find: 'Find a queue by its name',
  letters: 'Letters',
  groups: 'Groups',
  lettersOf: (name: string) => `Letters of ${name}`,
  groupsOf: (name: string) => `Groups of ${name}`,
  health: {
    idle: 'No consumer',
    idleWhat: 'Messages wait and nobody consumes the queue: start its worker.',
    growing: 'Growing',
    growingWhat: 'More comes in than goes out.',
    retrying: 'Retrying',
    retryingWhat: (count: string) => `${count} wait for their next attempt.`,
    well: 'Nothing to see to',
    unknown: 'Unknown',
  },
  unknown: 'The broker does not tell',
  noConsumer: 'Nobody consumes it',
  incomplete: 'This may not be everything:',
  noMatch: { title: 'No queue has that in its name', what: 'Take something away to see more.' },
  empty: { title: 'No queues yet', what: 'They are here as soon as a worker or a producer uses one.' },
};
