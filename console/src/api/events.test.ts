import { afterEach, expect, test, vi } from 'vitest';
import { watchRun } from './events';

class Source extends EventTarget {
  static made: Source[] = [];
  closed = false;
  readyState = 1;
  readonly url: string;
  constructor(url: string) {
    super();
    this.url = url;
    Source.made.push(this);
  }
  close() {
    this.closed = true;
  }
  tell(status: string) {
    this.dispatchEvent(new MessageEvent('progress', { data: JSON.stringify({ id: 'r', status }) }));
  }
}

afterEach(() => vi.unstubAllGlobals());

test('a run is watched until it has ended', () => {
  vi.stubGlobal('EventSource', Source);
  const [news, live] = [vi.fn(), vi.fn()];
  watchRun('a/b', news, live);
  const source = Source.made.at(-1)!;
  expect(source.url).toBe('/api/v1/runs/a%2Fb/events');
  source.dispatchEvent(new Event('open'));
  source.tell('RUNNING');
  source.dispatchEvent(new Event('error'));
  expect(source.closed).toBe(false);
  source.tell('DONE');
  expect(source.closed).toBe(true);
  expect(news.mock.calls.map(([each]: { status: string }[]) => each!.status)).toEqual(['RUNNING', 'DONE']);
  expect(live.mock.calls).toEqual([[true], [false]]);
});

test('where the browser has given up, it is connected again', () => {
  vi.useFakeTimers();
  vi.stubGlobal('EventSource', Source);
  const before = Source.made.length;
  const stop = watchRun('r', vi.fn());
  const first = Source.made.at(-1)!;
  first.dispatchEvent(new Event('error'));
  vi.advanceTimersByTime(60_000);
  expect(Source.made.length).toBe(before + 1);
  first.readyState = 2;
  first.dispatchEvent(new Event('error'));
  vi.advanceTimersByTime(6_000);
  expect(Source.made.length).toBe(before + 2);
  stop();
  expect(Source.made.at(-1)!.closed).toBe(true);
  vi.useRealTimers();
});
