import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ask, onSignedOut, told, urlOf } from './client';
import { ApiProblem } from './problem';
import { retryDelay, shouldRetry } from './query-client';

const fetched = vi.fn<typeof fetch>();

beforeEach(() => vi.stubGlobal('fetch', fetched));
afterEach(() => {
  vi.unstubAllGlobals();
  fetched.mockReset();
});

const json = (value: string, init: ResponseInit = {}) =>
  new Response(value, { headers: { 'content-type': 'application/json' }, ...init });

async function problemOf(response: Response): Promise<ApiProblem> {
  fetched.mockResolvedValueOnce(response);
  return told('get', '/api/v1/queues').then(
    () => Promise.reject(new Error('it was answered')),
    (error: unknown) => error as ApiProblem,
  );
}

describe('a request', () => {
  test('names in paths are encoded, so that no id leads elsewhere', () => {
    expect(urlOf('/api/v1/dlq/{letter_id}', { letter_id: '../runs?x=1' })).toBe('/api/v1/dlq/..%2Fruns%3Fx%3D1');
  });

  test('what is not given is not sent, and lists repeat their name', () => {
    expect(urlOf('/a', {}, { q: undefined, queue: ['a b', 'c'], limit: 5, empty: '' })).toBe('/a?queue=a+b&queue=c&limit=5');
  });

  test('If-Match, Idempotency-Key and JSON are sent', async () => {
    fetched.mockResolvedValueOnce(json('{"number":1}', { headers: { etag: '"1"' } }));
    const { etag } = await ask('post', '/api/v1/dlq/{letter_id}/revisions', {
      path: { letter_id: 'a' },
      body: { reason: 'r', payload: '1' },
      ifMatch: '"0"',
      idempotencyKey: 'k',
    });
    const [, init] = fetched.mock.calls[0]!;
    expect(init!.headers).toMatchObject({ 'if-match': '"0"', 'idempotency-key': 'k', 'content-type': 'application/json' });
    expect(init!.body).toBe('{"reason":"r","payload":"1"}');
    expect(etag).toBe('"1"');
  });
});

describe('a problem', () => {
  test('has what happened, what to do, and the request it was', async () => {
    const body = { title: 'Conflict', detail: 'it is RESOLVED', remedy: 'restore it', request_id: 'r1', column: 3, error: 'X' };
    const problem = await problemOf(
      new Response(JSON.stringify(body), { status: 409, headers: { 'content-type': 'application/problem+json' } }),
    );
    expect(problem).toMatchObject({ status: 409, detail: 'it is RESOLVED', remedy: 'restore it', requestId: 'r1', column: 3 });
    expect(shouldRetry(0, problem)).toBe(false);
  });

  test('Retry-After is how long to wait', async () => {
    const problem = await problemOf(new Response('', { status: 503, headers: { 'retry-after': '7' } }));
    expect(problem.isAway).toBe(true);
    expect([shouldRetry(0, problem), retryDelay(0, problem)]).toEqual([true, 7000]);
  });

  test('a page of a proxy is a problem too', async () => {
    const problem = await problemOf(new Response('<h1>', { status: 502, headers: { 'content-type': 'text/html' } }));
    expect(problem).toMatchObject({ status: 502, isAway: true });
  });

  test('no answer at all is one, and an abort is none', async () => {
    fetched.mockRejectedValueOnce(new TypeError('failed to fetch'));
    await expect(told('get', '/api/v1/queues')).rejects.toMatchObject({ status: 0, isAway: true });
    fetched.mockRejectedValueOnce(new DOMException('', 'AbortError'));
    await expect(told('get', '/api/v1/queues')).rejects.toBeInstanceOf(DOMException);
  });

  test('an ended session is told to whoever listens', async () => {
    const heard = vi.fn();
    const stop = onSignedOut(heard);
    await problemOf(new Response('', { status: 401 }));
    stop();
    await problemOf(new Response('', { status: 401 }));
    expect(heard).toHaveBeenCalledTimes(1);
  });
});
