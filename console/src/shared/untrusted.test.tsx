import { expect, test } from 'vitest';
import { show } from './testing/render';
import { Untrusted } from './Untrusted';
import { visible } from './untrusted';

test.each([
  ['\u202egnp.exe', '\\u202egnp.exe'],
  ['a\u0000b\u001b[31m', 'a\\x00b\\x1b[31m'],
  ['\u2066x\u2069', '\\u2066x\\u2069'],
  ['zero\u200bwidth\ufeff', 'zero\\u200bwidth\\ufeff'],
  ['tag \u{e0041}', 'tag \\u{e0041}'],
  ['half \ud83d!', 'half \\ud83d!'],
  ['line\nfeed\tstay', 'line\nfeed\tstay'],
  ['grüße 日本 😀', 'grüße 日本 😀'],
])('%j is shown as %j', (text, shown) => {
  expect(visible(text)).toBe(shown);
  expect(show(<Untrusted text={text} />).container.querySelector('bdi')).toHaveTextContent(shown, { normalizeWhitespace: false });
});

test('markup is text', () => {
  const { container } = show(<Untrusted text={'<img src=x onerror="x()"><script>x()</script>'} />);
  expect(container.querySelector('img, script')).toBeNull();
  expect(container).toHaveTextContent('<img src=x onerror="x()"><script>x()</script>');
});

test('long text is cut, and many escapes are one text', () => {
  expect(show(<Untrusted text={'x'.repeat(50)} most={10} />).container.querySelector('bdi')).toHaveTextContent('x'.repeat(10) + '…');
  const many = show(<Untrusted text={'\u0001'.repeat(5000)} />).container;
  expect(many.querySelectorAll('bdi span').length).toBe(0);
  expect(many).toHaveTextContent('\\x01\\x01');
});
