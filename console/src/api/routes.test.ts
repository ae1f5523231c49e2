import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const NOT_OURS: Record<string, string> = {
  'get /api/v1/export': 'filters may be personal: the body of POST has them, not the URL',
  'put /api/v1/dlq/{letter_id}/resolve': 'its reason is in the URL, which logs keep: POST /dlq-changes has it in the body',
  'delete /api/v1/dlq/{letter_id}': 'as above',
  'post /api/v1/dlq/{letter_id}/restore': 'POST /dlq-changes does it as well',
  'get /api/v1/runs/{run_id}/events': 'a stream: events.ts',
  'get /api/v1/session/oidc': 'the browser goes there itself',
  'get /api/v1/session/oidc/callback': 'the identity provider sends the browser there',
  'post /api/v1/letters': 'for consumers',
  'get /api/v1/validation/dlq': 'other names of routes that are used',
  'post /api/v1/validation/dlq/{letter_id}/retry': 'as above',
  'put /api/v1/validation/dlq/{letter_id}/resolve': 'as above',
  'delete /api/v1/validation/dlq/{letter_id}': 'as above',
  'get /livez': 'readyz tells more',
  'get /healthz': 'readyz is enough',
  'get /metrics': 'for Prometheus',
};

function routes(): string[] {
  const schema = readFileSync('src/api/schema.d.ts', 'utf8');
  const paths = schema.slice(schema.indexOf('export interface paths'), schema.indexOf('export type webhooks'));
  return [...paths.matchAll(/^ {4}"([^"]+)": \{$(.*?)^ {4}\};$/gms)].flatMap(([, path, block]) =>
    [...block!.matchAll(/^ {8}(get|post|put|patch|delete): operations/gm)].map(([, method]) => `${method!} ${path!}`),
  );
}

test('every route of the API has a service', () => {
  const sources = readdirSync('src/api').filter((name) => name.endsWith('.ts') && !/test|schema/.test(name));
  const written = sources.map((name) => readFileSync(`src/api/${name}`, 'utf8')).join('\n');
  const asked = new Set([...written.matchAll(/\(\s*'(get|post|put|patch|delete)',\s*'([^']+)'/g)].map(([, m, p]) => `${m!} ${p!}`));
  const missing = routes().filter((route) => !asked.has(route) && !(route in NOT_OURS));
  expect(routes().length).toBeGreaterThan(50);
  expect(missing).toEqual([]);
});
