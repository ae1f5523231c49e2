/** The one file that asks the server. Services of each noun name the routes; pages know services alone. */
import { noteAnswer, noteAway } from './availability';
import { parseExact } from './exact-json';
import { basePath } from './page';
import { ApiProblem, NO_ANSWER, problemOf } from './problem';
import { writtenBody } from './raw-json';
import type { paths } from './schema';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends PathOf<M>> = paths[P][M];
type Success = 200 | 201 | 202 | 204;
type Json<R> = R extends { content: { 'application/json': infer T } } ? T : null;
export type Told<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { responses: infer R } ? { [S in keyof R & Success]: Json<R[S]> }[keyof R & Success] : never;
type QueryOf<O> = O extends { parameters: { query?: infer Q } } ? Q : never;
type Loose<T> = T extends readonly unknown[] ? T : T extends object ? { [K in keyof T]?: Loose<T[K]> | undefined } : T;
type BodyOf<O> = O extends { requestBody?: { content: { 'application/json': infer B } } } ? Loose<B> : never;

export interface Asked<M extends Method, P extends PathOf<M>> {
  /** For the names in braces. */
  path?: Record<string, string>;
  query?: Loose<QueryOf<Operation<M, P>>> | undefined;
  body?: BodyOf<Operation<M, P>>;
  signal?: AbortSignal | undefined;
  /** The ETag that a change is based on. */
  ifMatch?: string;
  /** The same key again is the same run. */
  idempotencyKey?: string;
}

export interface Answer<T> {
  data: T;
  etag: string | null;
}

const signedOut = new Set<() => void>();

/** Told when a request was refused because nobody is signed in. Returns how to stop listening. */
export function onSignedOut(listener: () => void): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

export async function ask<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  asked: Asked<M, P> = {},
): Promise<Answer<Told<M, P>>> {
  const response = await askRaw(method, path, asked);
  const text = response.status === 204 ? '' : await response.text();
  const data = (text === '' ? null : parseExact(text)) as Told<M, P>;
  return { data, etag: response.headers.get('etag') };
}

/** As `ask`, without what stands around the answer. */
export async function told<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  asked: Asked<M, P> = {},
): Promise<Told<M, P>> {
  return (await ask(method, path, asked)).data;
}

/** The response itself, for what is no JSON. Throws an ApiProblem unless it was a success. */
export async function askRaw<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  asked: Asked<M, P> = {},
): Promise<Response> {
  const response = await answered(urlOf(path, asked.path, asked.query as object | undefined), {
    method: method.toUpperCase(),
    headers: headersOf(asked.body, asked.ifMatch, asked.idempotencyKey),
    body: asked.body === undefined ? null : writtenBody(asked.body),
    signal: asked.signal ?? null,
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
  });
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.isAway) noteAway(problem.retryAfter);
  if (problem.status === 401) for (const each of signedOut) each();
  throw problem;
}

async function answered(url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, init);
    if (response.status < 502) noteAnswer();
    return response;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    noteAway(null);
    throw new ApiProblem({ status: NO_ANSWER, detail: String(error) });
  }
}

export function urlOf(path: string, names: Record<string, string> = {}, query: object = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? ''));
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query) as [string, unknown][]) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== '') given.append(name, String(each));
    }
  }
  const written = given.toString();
  return `${basePath}${filled}${written === '' ? '' : `?${written}`}`;
}

function headersOf(body: unknown, ifMatch?: string, idempotencyKey?: string): Record<string, string> {
  return {
    accept: 'application/json',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
  };
}
