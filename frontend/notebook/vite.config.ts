import react from '@vitejs/plugin-react'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vite'
import { packed } from '../packed.ts'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const python = at('../node_modules/pyodide/')
const { version } = JSON.parse(readFileSync(join(python, 'package.json'), 'utf8')) as { version: string }
const folder = `pyodide-${version}`

/** Puts Python beside the page. What it could fetch from elsewhere is left out of its list: there is no elsewhere. */
function withPython(): Plugin {
  return {
    name: 'with-pyodide',
    apply: 'build',
    generateBundle() {
      for (const name of ['pyodide.mjs', 'pyodide.asm.mjs', 'pyodide.asm.wasm', 'python_stdlib.zip']) {
        this.emitFile({ type: 'asset', fileName: `${folder}/${name}`, source: readFileSync(join(python, name)) })
      }
      const lock = JSON.parse(readFileSync(join(python, 'pyodide-lock.json'), 'utf8')) as Record<string, unknown>
      this.emitFile({
        type: 'asset',
        fileName: `${folder}/pyodide-lock.json`,
        source: JSON.stringify({ ...lock, packages: {} }),
      })
      this.emitFile({ type: 'asset', fileName: 'icon.svg', source: readFileSync(at('../public/icon.svg')) })
    },
  }
}

export default defineConfig({
  root: at('.'),
  base: './',
  publicDir: false,
  define: { __PYTHON__: JSON.stringify(folder) },
  plugins: [react(), withPython(), packed(at('./dist'))],
  resolve: { alias: { '@': at('../src') } },
  worker: { format: 'es' },
  build: { outDir: 'dist', emptyOutDir: true, sourcemap: false, target: 'es2022', chunkSizeWarningLimit: 1500 },
})
