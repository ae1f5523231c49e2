import { pluralIn } from '../plural';

const plural = pluralIn('en');

export const doctor = {
  title: 'Doctor',
  look: 'Look now',
  looked: 'Looked',
  kept: 'That was looked at less than a minute ago: it is what you see.',
  running: 'Broker, store, disks and settings are being looked at. That takes half a minute at most.',
  columns: { level: 'Level', check: 'Check', what: 'What was found', remedy: 'What to do' },
  level: { problem: 'Problem', warn: 'Warning', unknown: 'Not checked', ok: 'Well' },
  counts: {
    problem: (count: number) => plural(count, { one: '# problem', other: '# problems' }),
    warn: (count: number) => plural(count, { one: '# warning', other: '# warnings' }),
    unknown: (count: number) => plural(count, { one: '# not checked', other: '# not checked' }),
    ok: (count: number) => plural(count, { one: '# well', other: '# well' }),
  },
  place: { broker: 'Broker', store: 'Store', disk: 'Disks', settings: 'Settings' },
  never: {
    title: 'Nobody has looked since the server was started',
    what: 'A look finds every place where a message may be lost, and changes nothing.',
  },
  locked: {
    title: 'The doctor is for administrators',
    what: 'It tells of every queue, of servers and of folders: that needs the permission access:manage for all queues.',
  },
};
