import { pluralIn } from '../plural';

const plural = pluralIn('en');

export const alerts = {
  title: 'Alerts',
  one: 'Alert',
  all: 'All alerts',
  firing: 'Firing',
  over: 'Over',
  overKept: 'of the last 30 days',
  areFiring: (count: number) => plural(count, { one: '# alert is firing', other: '# alerts are firing' }),
  moreFiring: (atMost: string) => `More than ${atMost} alerts are firing`,
  cut: (count: string) => `Only ${count} are listed: those that are firing first, then the last that ended.`,
  columns: { severity: 'Severity', what: 'What', since: 'Since', ended: 'Ended', state: 'Who sees to it', actions: 'Actions' },
  severity: { critical: 'Critical', error: 'Error', warning: 'Warning', info: 'Info' },
  rule: 'Rule',
  lasted: (duration: string) => `after ${duration}`,
  state: {
    nobody: 'Nobody yet',
    acknowledged: 'Acknowledged by',
    resolved: 'Resolved by',
    held: 'Said to be over, though rules still see it',
    snoozed: 'Snoozed by',
    wakes: 'wakes',
  },
  counts: {
    attempts: 'Attempts',
    bytes: 'Bytes',
    'collectors missing': 'Collectors missing',
    failed: 'Failed',
    failures: 'Failures',
    hours: 'Hours',
    letters: 'Letters',
    more: 'More',
    open: 'Open',
    'per minute': 'Per minute',
    pending: 'Pending',
    percent: 'Percent',
    things: 'Things',
    usual: 'Usual',
    'workers missing': 'Workers missing',
  } as Record<string, string>,
  actions: { acknowledge: 'Acknowledge', snooze: 'Snooze', wake: 'Wake', resolve: 'Resolve' },
  waits: { '1h': '1 hour', '4h': '4 hours', '1d': '1 day', '1w': '1 week' },
  asked: {
    acknowledge: {
      title: 'Acknowledge the alert',
      what: 'You see to it: nobody is reminded any more. That it is over will be told.',
      confirm: 'Acknowledge',
      done: 'The alert is acknowledged',
    },
    snooze: {
      title: 'Snooze the alert',
      what: (wait: string) =>
        `Nothing but its end is told of it for ${wait}, also when it begins anew meanwhile. If it is so then, it is told again.`,
      confirm: (wait: string) => `Snooze for ${wait}`,
      done: (wait: string) => `The alert is snoozed for ${wait}`,
    },
    wake: {
      title: 'Wake the alert',
      what: 'It is snoozed no longer: people are told of it again, at once if it goes on.',
      confirm: 'Wake',
      done: 'The alert is awake',
    },
    resolve: {
      title: 'Resolve the alert',
      what: 'You say that it is over. If rules still see it, it is told again only after it was over by itself.',
      confirm: 'Resolve',
      done: 'The alert is resolved',
    },
  },
  none: {
    title: 'Nothing is firing',
    what: 'Rules look at dead letters, groups, runs and processes by themselves. In the settings, [alerts.rules] changes what they look for and [alerts.channels] says who is told: docs/alerts.md.',
  },
};
