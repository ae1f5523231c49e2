import { Button, Menu } from '@mantine/core';
import { IconArrowBackUp, IconChevronDown, IconDownload, IconPencil } from '@tabler/icons-react';
import { wholeLetter } from '@/api/letter-parts';
import { serverAddress } from '@/api/page';
import type { Letter, Permission } from '@/api/types';
import { useText } from '@/locales/language';
import { Refusable } from '@/shared/Refusable';
import { useRefusal } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import { allows, DECISIONS, type DecisionName } from './changes';
import { letterByCommand, letterByCurl, retryByCommand } from './commands';
import { isLetterCut } from './content';
import { fileName, save } from './downloads';
import { exactJson } from './header-text';
import { useCopy } from './useCopy';
import classes from './LetterPage.module.css';

/** Why something cannot be done with this letter now; null: it can. */
export function useRefusalOf(letter: Letter, name: DecisionName | 'redrive' | 'edit', permission: Permission): string | null {
  const { letters: text, shared } = useText();
  const refusal = useRefusal(permission, letter.queue);
  if (refusal !== null) return refusal;
  if (!allows(name, letter.status)) return text.act.notNow(shared.status[letter.status]);
  const needsContent = name === 'redrive' || name === 'edit';
  return needsContent && letter.unreadable !== null ? text.act.unreadable : null;
}

interface Props {
  letter: Letter;
  onRedrive: () => void;
  onEdit: () => void;
  onDecide: (name: DecisionName) => void;
}

export function LetterActions({ letter, onRedrive, onEdit, onDecide }: Props) {
  const { letters: text } = useText();
  const redrive = useRefusalOf(letter, 'redrive', 'runs:make');
  const edit = useRefusalOf(letter, 'edit', 'letters:edit');
  return (
    <>
      <Refusable reason={redrive}>
        {(disabled) => (
          <Button variant="filled" disabled={disabled} leftSection={<IconArrowBackUp size={14} aria-hidden />} onClick={onRedrive}>
            {text.act.redrive}
          </Button>
        )}
      </Refusable>
      <Refusable reason={edit}>
        {(disabled) => (
          <Button disabled={disabled} leftSection={<IconPencil size={14} aria-hidden />} onClick={onEdit}>
            {text.act.edit}
          </Button>
        )}
      </Refusable>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button rightSection={<IconChevronDown size={13} aria-hidden />}>{text.act.more}</Button>
        </Menu.Target>
        <Menu.Dropdown>
          {DECISIONS.map((name) => (
            <DecisionItem key={name} name={name} letter={letter} onDecide={onDecide} />
          ))}
        </Menu.Dropdown>
      </Menu>
      <CopyMenu letter={letter} />
    </>
  );
}

function DecisionItem({ name, letter, onDecide }: { name: DecisionName; letter: Letter; onDecide: (name: DecisionName) => void }) {
  const { letters: text } = useText();
  const reason = useRefusalOf(letter, name, 'letters:decide');
  return (
    <Menu.Item
      data-disabled={reason !== null}
      className={classes.item ?? ''}
      closeMenuOnClick={reason === null}
      onClick={() => reason === null && onDecide(name)}
    >
      {text.act[name]}
      {reason !== null && <div className={classes.why}>{reason}</div>}
    </Menu.Item>
  );
}

function CopyMenu({ letter }: { letter: Letter }) {
  const { letters: text } = useText();
  const copy = useCopy();
  const toast = useToasts();
  const json = async () => exactJson(isLetterCut(letter) ? await wholeLetter(letter.id) : letter, 2);
  const withJson = (use: (text: string) => void) => void json().then(use, toast.problem);
  const download = (text: string) => save(`${fileName(letter.id)}.json`, new Blob([text, '\n'], { type: 'application/json' }));
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button rightSection={<IconChevronDown size={13} aria-hidden />}>{text.copyAs.menu}</Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => withJson(copy)}>{text.copyAs.json}</Menu.Item>
        <Menu.Item onClick={() => copy(letterByCurl(serverAddress(), letter.id))}>{text.copyAs.curl}</Menu.Item>
        <Menu.Item onClick={() => copy(letterByCommand(letter.id))}>{text.copyAs.command}</Menu.Item>
        <Menu.Item onClick={() => copy(retryByCommand(letter.id))}>{text.copyAs.retry}</Menu.Item>
        <Menu.Item onClick={() => copy(window.location.href)}>{text.copyAs.link}</Menu.Item>
        <Menu.Divider />
        <Menu.Item leftSection={<IconDownload size={14} aria-hidden />} onClick={() => withJson(download)}>
          {text.download.menu}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
