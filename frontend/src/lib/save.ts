/** Hands text to the person as a file. */
export function saveText(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }))
  saveUrl(name, url)
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** Downloads what is behind an address under a name. */
export function saveUrl(name: string, url: string): void {
  const link = document.createElement('a')
  link.href = url
  link.download = name
  document.body.append(link)
  link.click()
  link.remove()
}
