import '@mantine/core/styles.css';
import './shared/theme/variables.css';
import './shared/theme/theme.css';
import { createRoot } from 'react-dom/client';
import { createQueryClient } from './api/query-client';
import { load, preferred } from './locales/messages';
import { Console } from './routes/Console';
import { NotLoaded } from './routes/NotLoaded';
import { createRouter } from './routes/router';

async function start(): Promise<void> {
  const place = document.getElementById('root');
  if (place === null) throw new Error('the page has no root');
  const root = createRoot(place);
  try {
    const language = preferred();
    const messages = await load(language);
    root.render(<Console router={createRouter()} queries={createQueryClient()} language={language} messages={messages} />);
  } catch (error) {
    console.error(error);
    root.render(<NotLoaded />);
  }
}

void start();
