import '@testing-library/jest-dom/vitest';
import { cleanup, configure } from '@testing-library/react';
import { afterEach, vi } from 'vitest';

afterEach(cleanup);
// No machine is too slow for a test: these end what hangs, and say nothing about speed.
configure({ asyncUtilTimeout: 30_000 });

// What jsdom lacks and Mantine asks for.
Object.defineProperty(window, 'matchMedia', {
  value: (query: string) => ({
    matches: false,
    media: query,
    onchange: null,
    addEventListener: vi.fn(),
    removeEventListener: vi.fn(),
    dispatchEvent: vi.fn(),
  }),
});

class Unobserving {
  observe() {
    /* nothing is ever resized */
  }
  unobserve() {
    /* as above */
  }
  disconnect() {
    /* as above */
  }
}
window.ResizeObserver = Unobserving;
window.HTMLElement.prototype.scrollIntoView = () => undefined;
// axe measures icons with it.
window.HTMLCanvasElement.prototype.getContext = () => null;
