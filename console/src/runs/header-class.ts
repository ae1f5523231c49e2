/** Which headers an edit may touch: what the server decides, shown before it is asked. */
export type HeaderClass = 'locked' | 'sensitive' | 'free';

const IDS = new Set(
  'id messageid correlationid conversationid causationid requestid idempotencykey taskid rootid parentid relatedto ceid cloudeventsid'.split(' '),
);
const OF_BROKERS = new Set(['xdeath', 'xdeliverycount', 'xacquiredcount', 'cc', 'bcc']);
const BEGINNINGS = ['xredrive', 'xfirstdeath', 'xlastdeath'];
const PREFIXES = ['x', 'nservicebus', 'rbs2', 'mt', 'amqp'];
const SENSITIVE =
  'authorization authentication cookie token secret password passwd credential apikey accesskey privatekey jwt bearer session signature'.split(' ');

export function headerClass(name: string): HeaderClass {
  const bare = name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
  const prefix = IDS.has(bare) ? undefined : PREFIXES.find((each) => bare.startsWith(each));
  const core = prefix === undefined ? bare : bare.slice(prefix.length);
  if (OF_BROKERS.has(bare) || BEGINNINGS.some((each) => bare.startsWith(each)) || IDS.has(core)) return 'locked';
  return SENSITIVE.some((word) => bare.includes(word)) ? 'sensitive' : 'free';
}
