import type { components } from './schema';

type Problem = components['schemas']['Problem'];

interface Facts extends Partial<Problem> {
  status: number;
  retryAfter?: number | undefined;
}

/** The server has not answered at all. */
export const NO_ANSWER = 0;
const AWAY: ReadonlySet<number> = new Set([NO_ANSWER, 502, 503, 504]);

/** What went wrong, in the server's words: what happened, and what to do about it. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly remedy: string;
  readonly requestId: string;
  /** The error's name in the library, such as `TransitionRefused`. */
  readonly error: string;
  /** Where a filter cannot be read, counted from 1. */
  readonly column: number | null;
  /** Seconds to wait, if the server has told. */
  readonly retryAfter: number | null;

  constructor(facts: Facts) {
    super(facts.detail ?? facts.title ?? `status ${facts.status}`);
    this.name = 'ApiProblem';
    this.status = facts.status;
    this.title = facts.title ?? '';
    this.detail = facts.detail ?? '';
    this.remedy = facts.remedy ?? '';
    this.requestId = facts.request_id ?? '';
    this.error = facts.error ?? '';
    this.column = facts.column ?? null;
    this.retryAfter = facts.retryAfter ?? null;
  }

  /** The server or what it stands on cannot be reached: the same request may do later. */
  get isAway(): boolean {
    return AWAY.has(this.status);
  }
}

export function retryAfterOf(headers: Headers, now: number = Date.now()): number | undefined {
  const given = headers.get('retry-after');
  if (given === null) return undefined;
  const seconds = /^\d+$/.test(given.trim()) ? Number(given) : (Date.parse(given) - now) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}

export async function problemOf(response: Response): Promise<ApiProblem> {
  const retryAfter = retryAfterOf(response.headers);
  const requestId = response.headers.get('x-request-id') ?? '';
  const facts: Facts = { status: response.status, title: response.statusText, request_id: requestId, retryAfter };
  const kind = response.headers.get('content-type') ?? '';
  if (!kind.includes('json')) return new ApiProblem(facts);
  try {
    return new ApiProblem({ ...facts, ...((await response.json()) as Partial<Problem>), status: response.status });
  } catch {
    return new ApiProblem(facts);
  }
}

export function problemFrom(error: unknown): ApiProblem {
  return error instanceof ApiProblem ? error : new ApiProblem({ status: NO_ANSWER, detail: String(error) });
}
