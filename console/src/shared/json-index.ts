/**
 * Where everything stands in a JSON text, without making values of it: nothing is lost (integers of any length stay the
 * text they are), nothing recurses (20,000 levels are as good as two), and big texts are read in slices.
 */

export const Kind = { object: 0, array: 1, string: 2, number: 3, word: 4 } as const;
export type Kind = (typeof Kind)[keyof typeof Kind];

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const BACKSLASH = 92;
const OPEN_ARRAY = 91;
const CLOSE_ARRAY = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

export class NotJson extends Error {
  readonly at: number;
  constructor(at: number) {
    super(`not JSON at character ${at}`);
    this.at = at;
  }
}

/** A column of numbers that grows. */
class Column {
  private held = new Int32Array(1024);
  get(at: number): number {
    return this.held[at] ?? 0;
  }
  set(at: number, value: number): void {
    if (at >= this.held.length) {
      const grown = new Int32Array(this.held.length * 2);
      grown.set(this.held);
      this.held = grown;
    }
    this.held[at] = value;
  }
}

/** Nodes in the order they stand in the text. Node 0 is the whole; the first child of a node is the next one. */
export class JsonIndex {
  readonly text: string;
  size = 0;
  private readonly kinds = new Column();
  private readonly starts = new Column();
  private readonly ends = new Column();
  private readonly keyStarts = new Column();
  private readonly keyEnds = new Column();
  private readonly afters = new Column();
  private readonly counts = new Column();
  private at = 0;
  private readonly open: number[] = [];
  private expects: 'value' | 'first' | 'key' | 'next' = 'value';
  private key: [number, number] = [-1, -1];

  constructor(text: string) {
    this.text = text;
  }

  kind = (node: number) => this.kinds.get(node) as Kind;
  start = (node: number) => this.starts.get(node);
  end = (node: number) => this.ends.get(node);
  children = (node: number) => this.counts.get(node);
  /** The node behind this one and all it holds. */
  after = (node: number) => this.afters.get(node);
  /** The key as it is written, with its quotes; null: it has none. */
  keyOf = (node: number): string | null => {
    const from = this.keyStarts.get(node);
    return from < 0 ? null : this.text.slice(from, this.keyEnds.get(node));
  };

  /** Reads on for about so many characters. True: it is done. NotJson if it is none. */
  step(characters: number): boolean {
    const until = this.at + characters;
    while (this.at < until) {
      this.space();
      if (this.at >= this.text.length) return this.finished();
      if (this.expects === 'next' && this.open.length === 0) throw new NotJson(this.at);
      this.advance();
    }
    return false;
  }

  private finished(): boolean {
    if (this.expects !== 'next' || this.open.length > 0) throw new NotJson(this.at);
    return true;
  }

  private space(): void {
    let code = this.text.charCodeAt(this.at);
    while (code === 32 || code === 10 || code === 13 || code === 9) code = this.text.charCodeAt(++this.at);
  }

  private advance(): void {
    const code = this.text.charCodeAt(this.at);
    const inside = this.open.at(-1);
    const isObject = inside !== undefined && this.kind(inside) === Kind.object;
    const closing = isObject ? CLOSE_OBJECT : CLOSE_ARRAY;
    if (inside !== undefined && code === closing && (this.expects === 'first' || this.expects === 'next')) this.close();
    else if (this.expects === 'next') {
      if (code !== COMMA) throw new NotJson(this.at);
      this.at++;
      this.expects = isObject ? 'key' : 'value';
    } else if (isObject && (this.expects === 'key' || this.expects === 'first')) this.readKey();
    else this.value(code);
  }

  private readKey(): void {
    const from = this.at;
    this.string();
    this.key = [from, this.at];
    this.space();
    if (this.text.charCodeAt(this.at) !== COLON) throw new NotJson(this.at);
    this.at++;
    this.expects = 'value';
  }

  private value(code: number): void {
    const node = this.size++;
    this.starts.set(node, this.at);
    this.keyStarts.set(node, this.key[0]);
    this.keyEnds.set(node, this.key[1]);
    this.key = [-1, -1];
    const inside = this.open.at(-1);
    if (inside !== undefined) this.counts.set(inside, this.counts.get(inside) + 1);
    this.counts.set(node, 0);
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      this.kinds.set(node, code === OPEN_OBJECT ? Kind.object : Kind.array);
      this.open.push(node);
      this.at++;
      this.expects = 'first';
      return;
    }
    this.kinds.set(node, this.scalar(code));
    this.ends.set(node, this.at);
    this.afters.set(node, this.size);
    this.expects = 'next';
  }

  private scalar(code: number): Kind {
    if (code === QUOTE) {
      this.string();
      return Kind.string;
    }
    const [pattern, kind] = code === 45 || (code >= 48 && code <= 57) ? ([NUMBER, Kind.number] as const) : ([WORD, Kind.word] as const);
    pattern.lastIndex = this.at;
    if (!pattern.test(this.text)) throw new NotJson(this.at);
    this.at = pattern.lastIndex;
    return kind;
  }

  private close(): void {
    const node = this.open.pop() ?? 0;
    this.at++;
    this.ends.set(node, this.at);
    this.afters.set(node, this.size);
    this.expects = 'next';
  }

  private string(): void {
    if (this.text.charCodeAt(this.at) !== QUOTE) throw new NotJson(this.at);
    let end = this.text.indexOf('"', this.at + 1);
    while (end >= 0 && this.isEscaped(end)) end = this.text.indexOf('"', end + 1);
    if (end < 0) throw new NotJson(this.at);
    this.at = end + 1;
  }

  private isEscaped(quote: number): boolean {
    let before = quote - 1;
    while (this.text.charCodeAt(before) === BACKSLASH) before--;
    return (quote - 1 - before) % 2 === 1;
  }
}

/** At once, for texts that are small or where nobody waits. */
export function indexOf(text: string): JsonIndex {
  const index = new JsonIndex(text);
  while (!index.step(1 << 20));
  return index;
}

/** What a string's text means; a text with a broken escape stays as it is written. */
export function meaning(written: string): string {
  try {
    return JSON.parse(written) as string;
  } catch {
    return written.slice(1, -1);
  }
}
