import '@mantine/core/styles.css';
import './shared/theme/variables.css';
import './shared/theme/theme.css';
import { createRoot } from 'react-dom/client';
import { createQueryClient } from './api/query-client';
import { load, preferred } from './locales/messages';
import { Console } from './routes/Console';
import { createRouter } from './routes/router';

async function start(): Promise<void> {
  const language = preferred();
  const messages = await load(language);
  const root = document.getElementById('root');
  if (root === null) throw new Error('the page has no root');
  createRoot(root).render(
    <Console router={createRouter()} queries={createQueryClient()} language={language} messages={messages} />,
  );
}

void start();
