import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Plugin } from 'vite'

/** Packs every file that gets smaller by it, since all of them are embedded in the program. */
export function packed(dir: string): Plugin {
  return {
    name: 'packed',
    apply: 'build',
    closeBundle() {
      writeFileSync(join(dir, '.gitkeep'), '')
      for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name)
        if (!entry.isFile() || entry.name.startsWith('.') || entry.name === 'index.html') continue
        const data = readFileSync(path)
        const smaller = gzipSync(data, { level: 9 })
        if (smaller.length > data.length * 0.95) continue
        writeFileSync(`${path}.gz`, smaller)
        rmSync(path)
      }
    },
  }
}
