import { dropUpload, encodedName, type Conflict, type FilePlace, finishUpload, inside, makeDirectory, placeKey, statFile, uploadState, writePiece } from '@/api/files'
import { asProblem, type ApiProblem } from '@/api/client'

export type UploadStatus = 'waiting' | 'sending' | 'asking' | 'done' | 'skipped' | 'failed' | 'cancelled'

/** One file on its way, or one that has ended. */
export interface UploadItem {
  id: number
  place: FilePlace
  /** Encoded directory and name of what it will be. */
  dir: string
  name: string
  size: number
  sent: number
  status: UploadStatus
  problem?: ApiProblem
  /** What was brought at once: an answer may be given for all of it. */
  batch: number
}

/** What becomes of a file that is there already; skip: the new one is left out. */
export type ConflictAnswer = Conflict | 'skip'

/** A file with the directory that it goes to, from the directory that was dropped on. */
export interface Picked {
  file: File
  /** Parts of the path above the file's own name. */
  dirs: string[]
}

/** Most bytes of one request. What came of one that was cut off stays. */
const pieceSize = 64 * 1024 ** 2
const atOnce = 2
/** Pauses before a lost connection is tried again, in ms; the last one stays. */
const pauses = [500, 1000, 2000, 5000]

interface Job {
  item: UploadItem
  file: File
  stop: AbortController
  conflict: Conflict | undefined
}

/** A key that the same file to the same place has again, so that it goes on where it stood. */
export function uploadKey(place: FilePlace, path: string, file: Pick<File, 'size' | 'lastModified'>): string {
  const text = `${placeKey(place)} ${path} ${file.size} ${file.lastModified}`
  let a = 0x811c9dc5
  let b = 0x1b873593
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193) >>> 0
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b) >>> 0
  }
  return `web${a.toString(36)}x${b.toString(36)}`
}

/** What is being uploaded from this page. It goes on while other views are shown. */
export class Uploads {
  #jobs: Job[] = []
  #next = 1
  #batches = 0
  /** What was answered for all of a batch. */
  #rules = new Map<number, ConflictAnswer>()
  #listeners = new Set<() => void>()
  #shown: readonly UploadItem[] = []
  /** Called when a file has appeared somewhere. */
  onArrived: (place: FilePlace, dir: string) => void = () => {}

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  items = (): readonly UploadItem[] => this.#shown

  add(place: FilePlace, dir: string, picked: readonly Picked[]): void {
    const batch = ++this.#batches
    for (const { file, dirs } of picked) {
      const into = dirs.reduce((path, part) => inside(path, encodeURIComponent(part)), dir)
      const item: UploadItem = { id: this.#next++, place, dir: into, name: file.name, size: file.size, sent: 0, status: 'waiting', batch }
      this.#jobs.push({ item, file, stop: new AbortController(), conflict: undefined })
    }
    this.#tell()
    this.#pump()
  }

  /** Says what becomes of a file that is there already, or of all those of its batch, also of those that are found later. */
  answer(id: number, answer: ConflictAnswer, all: boolean): void {
    const { batch } = this.#jobs.find((job) => job.item.id === id)?.item ?? {}
    if (all && batch !== undefined) this.#rules.set(batch, answer)
    for (const job of this.#jobs) {
      if (job.item.status === 'asking' && (job.item.id === id || (all && job.item.batch === batch))) this.#settle(job, answer)
    }
    this.#pump()
  }

  /** Whether an answer for one may be meant for others too. */
  several(item: UploadItem): boolean {
    return this.#jobs.some((job) => job.item.batch === item.batch && job.item.id !== item.id && ['waiting', 'sending', 'asking'].includes(job.item.status))
  }

  #settle(job: Job, answer: ConflictAnswer): void {
    if (answer === 'skip') this.#drop(job)
    else job.conflict = answer
    this.#set(job, { status: answer === 'skip' ? 'skipped' : 'waiting' })
  }

  /** Somebody else has the name: as was answered before, or ask. */
  #collide(job: Job): void {
    const rule = this.#rules.get(job.item.batch)
    if (rule) this.#settle(job, rule)
    else this.#set(job, { status: 'asking' })
  }

  cancel(id: number): void {
    const job = this.#jobs.find((one) => one.item.id === id)
    if (!job || ['done', 'skipped', 'cancelled'].includes(job.item.status)) return
    job.stop.abort()
    this.#set(job, { status: 'cancelled' })
    this.#drop(job)
    this.#pump()
  }

  retry(id: number): void {
    const job = this.#jobs.find((one) => one.item.id === id && one.item.status === 'failed')
    if (!job) return
    job.stop = new AbortController()
    this.#set(job, { status: 'waiting' })
    this.#pump()
  }

  /** Takes what has ended off the list. */
  clear(): void {
    this.#jobs = this.#jobs.filter(({ item }) => item.status === 'waiting' || item.status === 'sending' || item.status === 'asking')
    this.#tell()
  }

  /** What had come is of no use to anybody. */
  #drop(job: Job): void {
    void dropUpload(job.item.place, this.#path(job), this.#key(job)).catch(() => undefined)
  }

  #path = (job: Job) => inside(job.item.dir, encodedName({ name: job.item.name }))
  #key = (job: Job) => uploadKey(job.item.place, this.#path(job), job.file)

  #set(job: Job, change: Partial<UploadItem>): void {
    job.item = { ...job.item, ...change }
    this.#tell()
  }

  #tell(): void {
    this.#shown = this.#jobs.map((job) => job.item)
    for (const listener of this.#listeners) listener()
  }

  #pump(): void {
    const busy = this.#jobs.filter((job) => job.item.status === 'sending').length
    for (const job of this.#jobs.filter((one) => one.item.status === 'waiting').slice(0, atOnce - busy)) {
      this.#set(job, { status: 'sending' })
      void this.#send(job).finally(() => this.#pump())
    }
  }

  async #send(job: Job): Promise<void> {
    const { place, dir } = job.item
    const { signal } = job.stop
    try {
      if (!job.conflict && (await this.#isThere(job))) {
        this.#collide(job)
        return
      }
      if (dir !== '') await makeDirectory(place, dir, true)
      for (let tries = 0; ; tries++) {
        try {
          await this.#pieces(job)
          break
        } catch (error) {
          if (signal.aborted || asProblem(error).status !== 0) throw error
          await new Promise((resolve) => setTimeout(resolve, pauses[Math.min(tries, pauses.length - 1)]))
        }
      }
      if (signal.aborted) return
      await finishUpload(place, this.#path(job), this.#key(job), { size: job.file.size, conflict: job.conflict ?? 'fail', modified: new Date(job.file.lastModified).toISOString() }, signal)
      this.#set(job, { status: 'done', sent: job.file.size })
      this.onArrived(place, dir)
    } catch (error) {
      if (signal.aborted) return
      const problem = asProblem(error)
      if (problem.code === 'file_finish_already-exists') this.#collide(job)
      else this.#set(job, { status: 'failed', problem })
    }
  }

  async #isThere(job: Job): Promise<boolean> {
    try {
      await statFile(job.item.place, this.#path(job), job.stop.signal)
      return true
    } catch (error) {
      if (asProblem(error).code.endsWith('_not-found')) return false
      throw error
    }
  }

  async #pieces(job: Job): Promise<void> {
    const { file, stop } = job
    let { offset } = await uploadState(job.item.place, this.#path(job), this.#key(job), stop.signal)
    if (offset > file.size) {
      await dropUpload(job.item.place, this.#path(job), this.#key(job))
      offset = 0
    }
    do {
      const from = offset
      const sent = await writePiece(job.item.place, this.#path(job), this.#key(job), from, file.slice(from, from + pieceSize), (bytes) => this.#set(job, { sent: Math.min(from + bytes, file.size) }), stop.signal)
      offset = Math.max(sent.offset, Math.min(from + pieceSize, file.size))
    } while (offset < file.size)
  }
}

/** The files of what was dropped or chosen, those in directories too. */
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
    if (some.length === 0) return found
    found.push(...(await Promise.all(some.map((inner) => walk(inner, [...dirs, entry.name])))).flat())
  }
}

/** The files of an input, which may have been asked for a whole directory. */
export const chosenOf = (list: FileList): Picked[] => [...list].map((file) => ({ file, dirs: file.webkitRelativePath.split('/').slice(0, -1) }))
