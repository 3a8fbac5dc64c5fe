// Finds what an import means, for the rule that holds the boundaries: "@/…" is
// src, relative paths are relative, anything else is a package.
const fs = require('node:fs')
const path = require('node:path')

const endings = ['', '.ts', '.tsx', '.json', '.css']

exports.interfaceVersion = 2

exports.resolve = (source, file) => {
  if (!source.startsWith('@/') && !source.startsWith('.')) return { found: true, path: null }
  const base = source.startsWith('@/')
    ? path.join(__dirname, 'src', source.slice(2))
    : path.resolve(path.dirname(file), source)
  for (const ending of endings) {
    const candidate = base + ending
    if (fs.existsSync(candidate) && fs.statSync(candidate).isFile()) return { found: true, path: candidate }
  }
  return { found: false }
}
