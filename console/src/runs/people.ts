const SAID_BY = ' (said by ';
const TOKEN = 'token:';
const OF = ' of ';

/** The name, and if it is a token's, those of whoever made it. */
function lineage(name: string): string[] {
  const names = name.startsWith(TOKEN) ? name.split(OF) : [name];
  return names.map((each) => (each.split(SAID_BY)[0] ?? '').trim().toLowerCase());
}

/** Whether nobody else has asked: a token is whoever made it, too. The server decides; this only tells before. */
export function samePerson(one: string, other: string): boolean {
  const [names, others] = [lineage(one), lineage(other)];
  return others.includes(names[0] ?? '') || names.includes(others[0] ?? '');
}
