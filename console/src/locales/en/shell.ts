export const shell = {
  skip: 'Skip to the content',
  menu: 'Open the navigation',
  navigation: 'Main navigation',
  language: 'Language',
  scheme: { label: 'Appearance', light: 'Light', dark: 'Dark', auto: 'As the system' },
  live: { on: 'Live', off: 'Paused', pause: 'Stop refreshing by itself', resume: 'Refresh by itself again' },
  me: { label: 'Account', signedInAs: 'Signed in as', roles: 'Roles', noRoles: 'No role', signOut: 'Sign out' },
  readOnly: 'Read-only',
  readOnlyWhy: 'This server only shows: nothing can be changed here.',
  away: {
    title: 'The server does not answer.',
    again: (seconds: number) => `What you see may be old. Trying again in ${seconds} s.`,
    now: 'Try now',
  },
  broken: {
    title: 'This page has failed',
    what: 'The fault is in the console, not in your data. Nothing was changed by it.',
    reload: 'Load the page again',
  },
  notFound: { title: 'There is no such page', what: 'The address may be old or cut off.', back: 'Go to the overview' },
  toast: { close: 'Dismiss' },
};
