import { Button, Modal, NativeSelect, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useCreateToken } from '@/api/accounts';
import { useText } from '@/locales/language';
import { CopyButton } from '@/shared/CopyButton';
import { visible } from '@/shared/untrusted';
import { useFocusBack } from '@/shared/useFocusBack';
import { FormDialog } from './Form';
import { GrantEditor } from './GrantEditor';
import { grantOf, type Draft } from './grants';
import classes from './Settings.module.css';

const DAYS = [1, 7, 30, 90, 365];

interface Made {
  name: string;
  text: string;
}

/** First the form, then the token, once: it is kept by this dialog alone and is gone with it. */
export function NewToken({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState<Made | null>(null);
  useFocusBack();
  return made === null ? <TokenForm onClose={onClose} onMade={setMade} /> : <Secret made={made} onClose={onClose} />;
}

function TokenForm({ onClose, onMade }: { onClose: () => void; onMade: (made: Made) => void }) {
  const { settings, shared } = useText();
  const { form: text } = settings.tokens;
  const create = useCreateToken();
  const [name, setName] = useState('');
  const [drafts, setDrafts] = useState<Draft[]>([{ role: 'viewer', queues: '' }]);
  const [lasts, setLasts] = useState('');
  const [reason, setReason] = useState('');
  const submit = async () => {
    const { token, text: secret } = await create.mutateAsync({ name: name.trim(), grants: drafts.map(grantOf), lasts: lasts || null, reason: reason.trim() });
    create.reset();
    onMade({ name: token.name, text: secret });
  };
  return (
    <FormDialog title={text.title} onClose={onClose} submit={text.make} ready={name.trim() !== ''} onSubmit={submit}>
      <TextInput
        label={text.name}
        description={text.nameHelp}
        value={name}
        maxLength={64}
        required
        data-autofocus
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <GrantEditor drafts={drafts} onChange={setDrafts} />
      <NativeSelect
        label={text.lasts}
        value={lasts}
        onChange={(event) => setLasts(event.currentTarget.value)}
        data={[{ value: '', label: text.usual }, ...DAYS.map((days) => ({ value: `${days}d`, label: text.days(days) }))]}
      />
      <TextInput label={shared.confirm.reason} description={shared.confirm.reasonHelp} value={reason} maxLength={1000} onChange={(event) => setReason(event.currentTarget.value)} />
    </FormDialog>
  );
}

/** Neither a click beside it nor Escape takes it away: it would be lost. */
function Secret({ made, onClose }: { made: Made; onClose: () => void }) {
  const { made: text } = useText().settings.tokens;
  return (
    <Modal opened onClose={onClose} title={text.title(visible(made.name))} size="lg" withCloseButton={false} closeOnClickOutside={false} closeOnEscape={false}>
      <div className={classes.form}>
        <p>{text.once}</p>
        <div className={classes.secret} role="group" aria-label={text.secret}>
          <code>{made.text}</code>
          <CopyButton value={made.text} label={text.copy} />
        </div>
        <p className="rd-dim">{text.use}</p>
        <code className={classes.command}>export REDRIVE_TOKEN=rdv_...</code>
        <div className={classes.buttons}>
          <Button size="sm" variant="filled" onClick={onClose}>
            {text.done}
          </Button>
        </div>
      </div>
    </Modal>
  );
}
