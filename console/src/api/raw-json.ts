/** JSON text that goes into a request as it was written: `1.10`, integers of any length, spacing. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A body as JSON text: bigints and RawJson stand in it exactly, whatever the browser can do. */
export function writtenBody(body: unknown): string {
  const raw: string[] = [];
  const mark = `raw-${crypto.getRandomValues(new Uint32Array(4)).join('-')}-`;
  const put = (text: string) => `${mark}${raw.push(text) - 1}-`;
  const text = JSON.stringify(body, (_key, value: unknown) => {
    if (value instanceof RawJson) return put(value.text);
    return typeof value === 'bigint' ? put(value.toString()) : value;
  });
  if (raw.length === 0) return text;
  return text.replace(new RegExp(`"${mark}(\\d+)-"`, 'g'), (_, at: string) => raw[Number(at)] ?? 'null');
}
