/**
 * CodeMirror under our content security policy. It writes a style tag into documents, which is refused; into a shadow
 * root it puts a stylesheet object, which is not. So every editor has a shadow root of its own.
 */
import { json } from '@codemirror/lang-json';
import { bracketMatching, foldGutter, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { search, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { escapeOf } from './untrusted';

const HIDDEN = /[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

const look = EditorView.theme({
  '&': { color: 'var(--rd-text)', backgroundColor: 'var(--rd-surface)', fontSize: '13px', height: '100%' },
  '&.cm-focused': { outline: '2px solid var(--rd-accent)', outlineOffset: '-1px' },
  '.cm-scroller': { fontFamily: 'var(--mantine-font-family-monospace)', lineHeight: '1.55' },
  '.cm-gutters': { backgroundColor: 'var(--rd-surface)', color: 'var(--rd-dim)', border: '0' },
  '.cm-cursor': { borderLeftColor: 'var(--rd-text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection': {
    backgroundColor: 'var(--rd-selected) !important',
  },
  '.cm-specialChar': { color: 'var(--rd-warn)' },
});

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--rd-accent)' },
  { tag: tags.number, color: 'var(--rd-status-redriving)' },
  { tag: [tags.bool, tags.null], color: 'var(--rd-status-quarantined)' },
  { tag: tags.invalid, color: 'var(--rd-bad)' },
]);

function escaped(code: number): HTMLElement {
  const shown = document.createElement('span');
  shown.className = 'cm-specialChar';
  shown.textContent = escapeOf(String.fromCodePoint(code));
  return shown;
}

/** What every view of code has: the look, escapes for what cannot be seen, search, folding. */
export function codeExtensions(language: 'json' | 'text'): Extension[] {
  return [
    look,
    syntaxHighlighting(colours),
    highlightSpecialChars({ addSpecialChars: HIDDEN, render: escaped }),
    lineNumbers(),
    foldGutter(),
    bracketMatching(),
    search({ top: true }),
    keymap.of(searchKeymap),
    EditorView.lineWrapping,
    ...(language === 'json' ? [json()] : []),
  ];
}

export const readOnly: Extension[] = [EditorState.readOnly.of(true), EditorView.editable.of(false)];

/** Where an editor may be put: the shadow root of that element, made once. */
export function rootOf(host: HTMLElement): ShadowRoot {
  return host.shadowRoot ?? host.attachShadow({ mode: 'open' });
}

/** An editor inside of `host`. Whoever makes it destroys it. */
export function mountEditor(host: HTMLElement, doc: string, extensions: Extension[]): EditorView {
  const root = rootOf(host);
  return new EditorView({ parent: root, root, state: EditorState.create({ doc, extensions }) });
}
