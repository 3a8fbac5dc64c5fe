/**
 * A file with the directory that it goes to, from the directory that was dropped on. Without a file: that directory,
 * empty.
 */
export interface Picked {
  file?: File
  /** Parts of the path above the file's own name. */
  dirs: string[]
}

/** The files of what was dropped, those in directories too, and the directories that hold nothing. */
export async function pickedOf(transfer: DataTransfer): Promise<Picked[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null)
  if (entries.length === 0) return [...transfer.files].map((file) => ({ file, dirs: [] }))
  return (await Promise.all(entries.map((entry) => walk(entry, [])))).flat()
}

async function walk(entry: FileSystemEntry, dirs: string[]): Promise<Picked[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))
    return [{ file, dirs }]
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  const found: Picked[] = []
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
    if (some.length === 0) return found.length > 0 ? found : [{ dirs: [...dirs, entry.name] }]
    found.push(...(await Promise.all(some.map((inner) => walk(inner, [...dirs, entry.name])))).flat())
  }
}

/** The files of an input, which may have been asked for a whole directory. */
export const chosenOf = (list: FileList): Picked[] =>
  [...list].map((file) => ({ file, dirs: file.webkitRelativePath.split('/').slice(0, -1) }))
