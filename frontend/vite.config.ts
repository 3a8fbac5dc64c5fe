import react from '@vitejs/plugin-react'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { packed } from './packed.ts'

// `npm run dev` shows the page with live reload against a running `slipway serve`:
//   SLIPWAY_URL=http://127.0.0.1:7421 SLIPWAY_TOKEN=$(cat "$SLIPWAY_HOME/token") npm run dev
const target = process.env.SLIPWAY_URL ?? 'http://127.0.0.1:7421'
const headers: Record<string, string> = { origin: target }
if (process.env.SLIPWAY_TOKEN) headers.authorization = `Bearer ${process.env.SLIPWAY_TOKEN}`

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  base: '/',
  plugins: [react(), packed(at('./dist'))],
  resolve: { alias: { '@': at('./src') } },
  build: { outDir: 'dist', emptyOutDir: true, sourcemap: false, target: 'es2022', chunkSizeWarningLimit: 900 },
  server: {
    fs: { allow: [at('..')] }, // the licences of others
    proxy: { '/api': { target, changeOrigin: true, ws: true, headers } },
  },
  test: {
    environment: 'jsdom',
    include: ['{src,notebook/src}/**/*.test.{ts,tsx}'],
    setupFiles: ['./vitest.setup.ts'],
    restoreMocks: true,
    pool: 'threads',
    isolate: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    css: false,
  },
})
