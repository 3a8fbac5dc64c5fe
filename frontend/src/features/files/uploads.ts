import * as api from '@/api/files'
import { encodedName, type Conflict, type FilePlace, inside, placeKey } from '@/api/files'
import { asProblem, type ApiProblem } from '@/api/client'
import type { FileInfo } from '@/api/types.gen'
import type { Picked } from './picked'

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
  /** When the file was changed last, and what has its name already. */
  modified: string
  there?: FileInfo
  /** What was brought at once: an answer may be given for all of it. */
  batch: number
}

/** What becomes of a file that is there already; skip: the new one is left out. */
type ConflictAnswer = Conflict | 'skip'

/** Most bytes of one request. What came of one that was cut off stays. */
const pieceSize = 64 * 1024 ** 2
const atOnce = 2
/** Pauses before a lost connection is tried again, in ms; the last one stays. */
const pauses = [500, 1000, 2000, 5000]

interface Job {
  item: UploadItem
  /** Undefined: an empty directory. */
  file: File | undefined
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

/** What uploads ask of the server. */
export type UploadServer = Pick<
  typeof api,
  'dropUpload' | 'finishUpload' | 'makeDirectory' | 'statFile' | 'uploadState' | 'writePiece'
>

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
  readonly #server: UploadServer

  constructor(server: UploadServer = api) {
    this.#server = server
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  items = (): readonly UploadItem[] => this.#shown

  add(place: FilePlace, dir: string, picked: readonly Picked[]): void {
    const batch = ++this.#batches
    for (const { file, dirs } of picked) {
      const above = file ? dirs : dirs.slice(0, -1)
      const into = above.reduce((path, part) => inside(path, encodeURIComponent(part)), dir)
      const modified = file ? new Date(file.lastModified).toISOString() : ''
      const item: UploadItem = {
        id: this.#next++,
        place,
        dir: into,
        name: file?.name ?? dirs.at(-1) ?? '',
        size: file?.size ?? 0,
        sent: 0,
        status: 'waiting',
        batch,
        modified,
      }
      this.#jobs.push({ item, file, stop: new AbortController(), conflict: undefined })
    }
    this.#tell()
    this.#pump()
  }

  /**
   * Says what becomes of a file that is there already, or of all those of its batch, also of those that are found
   * later.
   */
  answer(id: number, answer: ConflictAnswer, all: boolean): void {
    const { batch } = this.#jobs.find((job) => job.item.id === id)?.item ?? {}
    if (all && batch !== undefined) this.#rules.set(batch, answer)
    for (const job of this.#jobs) {
      const also = all && job.item.batch === batch && (answer === 'skip' || job.item.there?.kind !== 'directory')
      if (job.item.status === 'asking' && (job.item.id === id || also)) this.#settle(job, answer)
    }
    this.#pump()
  }

  /** Whether an answer for one may be meant for others too. */
  several(item: UploadItem): boolean {
    return this.#jobs.some(
      (job) =>
        job.item.batch === item.batch &&
        job.item.id !== item.id &&
        ['waiting', 'sending', 'asking'].includes(job.item.status),
    )
  }

  #settle(job: Job, answer: ConflictAnswer): void {
    if (answer === 'skip') this.#drop(job)
    else job.conflict = answer
    this.#set(job, { status: answer === 'skip' ? 'skipped' : 'waiting' })
  }

  /** Something else has the name: as was answered before, or ask. A directory is never replaced. */
  #collide(job: Job, there: FileInfo): void {
    const rule = this.#rules.get(job.item.batch)
    if (rule && (rule === 'skip' || there.kind !== 'directory')) this.#settle(job, rule)
    else this.#set(job, { status: 'asking', there })
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
    this.#jobs = this.#jobs.filter(
      ({ item }) => item.status === 'waiting' || item.status === 'sending' || item.status === 'asking',
    )
    this.#tell()
  }

  /** What had come is of no use to anybody. */
  #drop(job: Job): void {
    if (job.file)
      void this.#server.dropUpload(job.item.place, this.#path(job), this.#key(job, job.file)).catch(() => undefined)
  }

  #path = (job: Job) => inside(job.item.dir, encodedName({ name: job.item.name }))
  #key = (job: Job, file: File) => uploadKey(job.item.place, this.#path(job), file)

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
      if (job.file) await this.#sendFile(job, job.file)
      else await this.#server.makeDirectory(place, this.#path(job), true)
      if (signal.aborted || job.item.status !== 'sending') return
      this.#set(job, { status: 'done', sent: job.item.size })
      this.onArrived(place, dir)
    } catch (error) {
      if (!signal.aborted) this.#set(job, { status: 'failed', problem: asProblem(error) })
    }
  }

  async #sendFile(job: Job, file: File): Promise<void> {
    const { place, dir, modified } = job.item
    const { signal } = job.stop
    const there = job.conflict ? undefined : await this.#isThere(job)
    if (there) return this.#collide(job, there)
    if (dir !== '') await this.#server.makeDirectory(place, dir, true)
    for (let tries = 0; ; tries++) {
      try {
        await this.#pieces(job, file)
        break
      } catch (error) {
        if (signal.aborted || asProblem(error).status !== 0) throw error
        await new Promise((resolve) => setTimeout(resolve, pauses[Math.min(tries, pauses.length - 1)]))
      }
    }
    if (signal.aborted) return
    try {
      await this.#server.finishUpload(
        place,
        this.#path(job),
        this.#key(job, file),
        { size: file.size, conflict: job.conflict ?? 'fail', modified },
        signal,
      )
    } catch (error) {
      const taken = asProblem(error).code === 'file_use_already-exists' ? await this.#isThere(job) : undefined
      if (!taken) throw error
      this.#collide(job, taken)
    }
  }

  /** What has the name of a file already. */
  async #isThere(job: Job): Promise<FileInfo | undefined> {
    try {
      return await this.#server.statFile(job.item.place, this.#path(job), job.stop.signal)
    } catch (error) {
      if (asProblem(error).code.endsWith('_not-found')) return undefined
      throw error
    }
  }

  async #pieces(job: Job, file: File): Promise<void> {
    const { place } = job.item
    const { signal } = job.stop
    const [path, key] = [this.#path(job), this.#key(job, file)]
    let { offset } = await this.#server.uploadState(place, path, key, signal)
    if (offset > file.size) {
      await this.#server.dropUpload(place, path, key)
      offset = 0
    }
    do {
      const from = offset
      const sent = await this.#server.writePiece(
        place,
        path,
        key,
        from,
        file.slice(from, from + pieceSize),
        (bytes) => this.#set(job, { sent: Math.min(from + bytes, file.size) }),
        signal,
      )
      offset = Math.max(sent.offset, Math.min(from + pieceSize, file.size))
    } while (offset < file.size)
  }
}
