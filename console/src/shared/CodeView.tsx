import { Skeleton } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { TextWindow } from './TextWindow';

const CodeMirrorView = lazy(() => import('./CodeMirrorView'));
/** Beyond it, an editor is slow on small machines: windows of plain text do. */
const LONGEST = 1024 * 1024;

interface Props {
  text: string;
  language?: 'json' | 'text';
  /** What it is, for those who do not see it. */
  label: string;
}

/** Code to read: line numbers, folding, search. Its parts are loaded when it is first shown. */
export function CodeView({ text, language = 'text', label }: Props) {
  if (text.length > LONGEST) return <TextWindow text={text} />;
  return (
    <Suspense fallback={<Skeleton height={120} />}>
      <CodeMirrorView text={text} language={language} label={label} />
    </Suspense>
  );
}
