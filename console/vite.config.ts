import react from '@vitejs/plugin-react';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  // Every address in the page is relative, so that the server can put it below any path.
  base: './',
  plugins: [react()],
  resolve: { alias: { '@': here('./src') } },
  build: {
    outDir: here('../src/redrive/console'),
    emptyOutDir: true,
    manifest: true,
    target: 'es2022',
    // Inlined files would be data: addresses, which the content security policy refuses.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 600,
  },
  server: { proxy: { '/api': process.env.REDRIVE_URL ?? 'http://127.0.0.1:8642' } },
  test: {
    environment: 'jsdom',
    setupFiles: [here('./src/shared/testing/setup.ts')],
    restoreMocks: true,
    testTimeout: 120_000,
    css: false,
  },
});
