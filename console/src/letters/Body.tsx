import { Button, SegmentedControl } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useMemo, useState } from 'react';
import { useFormat, useText } from '@/locales/language';
import { CodeView } from '@/shared/CodeView';
import { CopyButton } from '@/shared/CopyButton';
import { HexView } from '@/shared/HexView';
import { JsonTree } from '@/shared/JsonTree';
import { TextWindow } from '@/shared/TextWindow';
import { useToasts } from '@/shared/toasts';
import { bytesIn, type Content } from './content';
import { fileName, save } from './downloads';
import { envelopeOf } from './envelope';
import classes from './Payload.module.css';

export type PayloadView = 'tree' | 'raw' | 'hex';

interface Props {
  id: string;
  content: Content;
  /** Of the whole, in bytes. */
  size: number;
  /** Whether it is only the beginning. */
  cut: boolean;
  /** Loads all of it; undefined: nobody can. */
  onLoad: (() => Promise<Content>) | undefined;
  isRevealed: boolean;
  view: string;
  onView: (view: PayloadView) => void;
}

/** A body as a tree, as text or as bytes; the data of our own envelope by itself. */
export function Body({ id, content, size, cut, onLoad, isRevealed, view, onView }: Props) {
  const { letters: text } = useText();
  const [part, setPart] = useState('data');
  const envelope = useMemo(() => ('text' in content ? envelopeOf(content.text) : null), [content]);
  const shown = useMemo(
    (): Content => (envelope !== null && part === 'data' ? { text: envelope.data } : content),
    [content, envelope, part],
  );
  const views = viewsOf(shown, cut);
  const chosen = views.find((each) => each === view) ?? views[0] ?? 'raw';
  return (
    <>
      {cut && <CutNote shown={shown} size={size} onLoad={onLoad} isRevealed={isRevealed} />}
      <div className={classes.tools}>
        <SegmentedControl
          size="xs"
          aria-label={text.payload.title}
          value={chosen}
          data={views.map((each) => ({ value: each, label: text.payload[each] }))}
          onChange={(next) => onView(next)}
        />
        {envelope !== null && (
          <SegmentedControl
            size="xs"
            aria-label={text.payload.body}
            value={part}
            data={[
              { value: 'data', label: text.payload.data },
              { value: 'body', label: text.payload.body },
            ]}
            onChange={setPart}
          />
        )}
        <Tools id={id} shown={shown} onLoad={cut ? onLoad : undefined} />
      </div>
      <Shown content={shown} view={chosen} />
    </>
  );
}

/** The first one is shown if nobody chose another. The beginning of a text is no tree. */
function viewsOf(shown: Content, cut: boolean): PayloadView[] {
  if ('bytes' in shown) return ['hex', 'raw'];
  return cut ? ['raw', 'hex'] : ['tree', 'raw', 'hex'];
}

function useSize(): (bytes: number) => string {
  const { letters: text } = useText();
  const format = useFormat();
  return (bytes) => (bytes < 10_000 ? text.facts.bytes(bytes) : `${format.number(Math.round(bytes / 1024))} KiB`);
}

type CutProps = Pick<Props, 'size' | 'onLoad' | 'isRevealed'> & { shown: Content };

/** That there is more, and the way to it. */
function CutNote({ shown, size, onLoad, isRevealed }: CutProps) {
  const { letters: text } = useText();
  const sizeOf = useSize();
  const toast = useToasts();
  const [busy, setBusy] = useState(false);
  const load = () => {
    setBusy(true);
    onLoad?.()
      .catch(toast.problem)
      .finally(() => setBusy(false));
  };
  return (
    <p className={classes.cut} role="note">
      {text.payload.cut(sizeOf(bytesIn(shown).length), sizeOf(size))}
      {onLoad !== undefined && (
        <Button size="compact-xs" loading={busy} onClick={load}>
          {text.payload.loadAll(sizeOf(size))}
        </Button>
      )}
      {onLoad !== undefined && isRevealed && <span className="rd-dim">{text.payload.loadTold}</span>}
    </p>
  );
}

function Tools({ id, shown, onLoad }: { id: string; shown: Content; onLoad: Props['onLoad'] }) {
  const { letters: text } = useText();
  const toast = useToasts();
  const sizeOf = useSize();
  const bytes = useMemo(() => bytesIn(shown), [shown]);
  const download = async () => {
    const all = onLoad === undefined ? shown : await onLoad();
    save(`${fileName(id)}${'bytes' in all ? '.bin' : '.txt'}`, new Blob([bytesIn(all)]));
  };
  return (
    <span className={classes.right}>
      <span className="rd-dim" title={text.facts.bytes(bytes.length)}>
        {sizeOf(bytes.length)}
      </span>
      {'text' in shown && <CopyButton value={shown.text} />}
      <Button size="compact-xs" leftSection={<IconDownload size={13} aria-hidden />} onClick={() => void download().catch(toast.problem)}>
        {text.download.menu}
      </Button>
    </span>
  );
}

function Shown({ content, view }: { content: Content; view: PayloadView }) {
  const { letters: text } = useText();
  const isBinary = 'bytes' in content;
  const bytes = useMemo(() => ('bytes' in content || view === 'hex' ? bytesIn(content) : null), [content, view]);
  if (view === 'hex' && bytes !== null) {
    return (
      <>
        {isBinary && <p className="rd-dim">{text.payload.encoding}</p>}
        <HexView bytes={bytes} />
      </>
    );
  }
  if (isBinary) return <TextWindow text={new TextDecoder('utf-8').decode(content.bytes)} />;
  if (view === 'tree') return <JsonTree text={content.text} />;
  return <CodeView text={content.text} language="json" label={text.payload.raw} />;
}
