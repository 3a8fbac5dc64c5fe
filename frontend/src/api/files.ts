// The endpoints of files: those of a running session, and those of a folder.
import i18next from 'i18next'
import { ApiProblem, content, send, target, unanswered, unexplained } from './client'
import {
  routes,
  type FileInfo,
  type FileListing,
  type FinishRequest,
  type Problem,
  type RouteTypes,
  type UploadState,
} from './types.gen'

/** What becomes of a file that already exists. */
export type Conflict = 'fail' | 'replace' | 'keep-both'

/** Whose files are meant. */
export type FilePlace = { session: string; kernel?: string } | { folder: string }

export const placeKey = (place: FilePlace): string =>
  'folder' in place ? `folder:${place.folder}` : `session:${place.session}:${place.kernel ?? ''}`

/** The routes to files of sessions; those of folders are called the same after `folder-`. */
type FileRoute =
  | 'files'
  | 'file-stat'
  | 'file-read'
  | 'file-zip'
  | 'file-move'
  | 'file-remove'
  | 'directory-make'
  | 'upload'
  | 'upload-write'
  | 'upload-finish'
  | 'upload-drop'

/**
 * A route's address for a path as the query carries it: percent-encoded, with
 * every byte. Names that are no text come encoded from the server and stay so;
 * tail is more of the query in that form.
 */
function fileAddress(
  place: FilePlace,
  name: FileRoute,
  encodedPath: string,
  more: Record<string, string | number> = {},
  tail = '',
): string {
  const at =
    'folder' in place
      ? target(`folder-${name}`, { path: { folder: place.folder } })
      : target(name, { path: { id: place.session } })
  const given = Object.entries('session' in place && place.kernel ? { ...more, kernel: place.kernel } : more)
  const rest = given.map(([key, value]) => `&${key}=${encodeURIComponent(value)}`).join('')
  return `${at}?path=${encodedPath}${rest}${tail}`
}

/** Calls a route to a file at its address. */
const ask = async <N extends FileRoute>(
  name: N,
  address: string,
  signal?: AbortSignal,
  body?: RouteTypes[N]['request'],
): Promise<RouteTypes[N]['response']> => content(await send(routes[name].method, address, body, signal))

/** The name of an entry as it stands in an address. */
export const encodedName = (file: Pick<FileInfo, 'name' | 'encoded'>): string =>
  file.encoded || encodeURIComponent(file.name)

/** Joins a directory and a name, both encoded. "" is where relative paths begin. */
export const inside = (dir: string, name: string): string => (dir === '' ? name : `${dir}%2F${name}`)

const listFiles = (place: FilePlace, dir: string, after: string, signal?: AbortSignal) =>
  ask('files', fileAddress(place, 'files', dir, {}, after && `&after=${after}`), signal)

/** A directory as a whole, its parts put together. */
export async function listAll(place: FilePlace, dir: string, signal: AbortSignal): Promise<FileListing> {
  const listing = await listFiles(place, dir, '', signal)
  let part = listing
  while (part.more && part.entries.length > 0) {
    part = await listFiles(place, dir, encodedName(part.entries[part.entries.length - 1] as FileInfo), signal)
    listing.entries.push(...part.entries)
  }
  return listing
}
export const statFile = (place: FilePlace, path: string, signal?: AbortSignal) =>
  ask('file-stat', fileAddress(place, 'file-stat', path), signal)
export const contentAddress = (place: FilePlace, path: string) => fileAddress(place, 'file-read', path)
export const readFile = (place: FilePlace, path: string, signal?: AbortSignal) =>
  send('GET', contentAddress(place, path), undefined, signal)
export const zipAddress = (place: FilePlace, paths: readonly string[], name: string) => {
  const more = paths.slice(1).map((path) => `&path=${path}`)
  return fileAddress(place, 'file-zip', paths[0] ?? '', { name }, more.join(''))
}
export const makeDirectory = (place: FilePlace, path: string, parents = false) =>
  ask('directory-make', fileAddress(place, 'directory-make', path, parents ? { parents: 1 } : {}))
export const moveFile = (place: FilePlace, from: string, to: string) =>
  ask('file-move', fileAddress(place, 'file-move', from, {}, `&to=${to}`))
export const removeFile = (place: FilePlace, path: string, signal?: AbortSignal) =>
  ask('file-remove', fileAddress(place, 'file-remove', path, { recursive: 1 }), signal)

/** Removes everything in the root of a place. */
export async function emptyDirectory(place: FilePlace): Promise<void> {
  const { entries } = await listAll(place, '', new AbortController().signal)
  for (const entry of entries) await removeFile(place, encodedName(entry))
}

export const uploadState = (place: FilePlace, path: string, key: string, signal?: AbortSignal) =>
  ask('upload', fileAddress(place, 'upload', path, { key }), signal)
export const dropUpload = (place: FilePlace, path: string, key: string) =>
  ask('upload-drop', fileAddress(place, 'upload-drop', path, { key }))
export const finishUpload = (
  place: FilePlace,
  path: string,
  key: string,
  body: FinishRequest & { conflict: Conflict },
  signal?: AbortSignal,
) => ask('upload-finish', fileAddress(place, 'upload-finish', path, { key }), signal, body)

/** Adds a piece to an upload and says how it goes; fetch cannot, so it is an XMLHttpRequest. */
export function writePiece(
  place: FilePlace,
  path: string,
  key: string,
  offset: number,
  piece: Blob,
  progress: (sent: number) => void,
  signal: AbortSignal,
): Promise<UploadState> {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest()
    const stop = () => call.abort()
    signal.addEventListener('abort', stop, { once: true })
    call.open('PUT', fileAddress(place, 'upload-write', path, { key, offset }))
    call.upload.onprogress = (event) => progress(event.loaded)
    call.onloadend = () => signal.removeEventListener('abort', stop)
    call.onabort = () => reject(new DOMException('cancelled', 'AbortError'))
    call.onerror = () => reject(unanswered(i18next.t('problem.uploadHint')))
    call.onload = () => {
      try {
        const answer = JSON.parse(call.responseText) as UploadState & Problem
        if (call.status < 400) resolve(answer)
        else reject(new ApiProblem(answer, call.status))
      } catch {
        reject(unexplained(call.status))
      }
    }
    call.send(piece)
  })
}

/** Writes a text as a whole file. */
export async function writeText(
  place: FilePlace,
  path: string,
  text: string,
  how: Omit<FinishRequest, 'size'> & { conflict: Conflict },
): Promise<void> {
  const blob = new Blob([text])
  const key = `edit${Date.now().toString(36)}`
  await writePiece(place, path, key, 0, blob, () => {}, new AbortController().signal)
  await finishUpload(place, path, key, { size: blob.size, ...how })
}
