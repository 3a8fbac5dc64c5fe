// The endpoints of files: those of a running session, and those of a folder.
import i18next from 'i18next'
import { address, ApiProblem, request, send, unanswered, unexplained } from './client'
import type { FileInfo, FileListing, FinishRequest, UploadState } from './types.gen'

/** What becomes of a file that is there already. */
export type Conflict = 'fail' | 'replace' | 'keep-both'

/** Whose files are meant. */
export type FilePlace = { session: string; kernel?: string } | { folder: string }

export const placeKey = (place: FilePlace): string =>
  'folder' in place ? `folder:${place.folder}` : `session:${place.session}:${place.kernel ?? ''}`
const base = (place: FilePlace): string =>
  'folder' in place
    ? `/api/v1/folders/${encodeURIComponent(place.folder)}/files`
    : `/api/v1/sessions/${encodeURIComponent(place.session)}/files`

/**
 * A path as the query carries it: percent-encoded, with every byte. Names that
 * are no text come encoded from the server and stay so.
 */
export function filesAddress(
  place: FilePlace,
  call: string,
  encodedPath: string,
  more: Record<string, string | number | undefined> = {},
): string {
  const kernel = 'session' in place ? place.kernel : undefined
  const rest = address('', { ...more, kernel }).slice(1)
  return `${base(place)}${call}?path=${encodedPath}${rest ? `&${rest}` : ''}`
}

/** The name of an entry as it stands in an address. */
export const encodedName = (file: Pick<FileInfo, 'name' | 'encoded'>): string =>
  file.encoded || encodeURIComponent(file.name)

/** Joins a directory and a name, both encoded. "" is where relative paths begin. */
export const inside = (dir: string, name: string): string => (dir === '' ? name : `${dir}%2F${name}`)

const listFiles = (place: FilePlace, dir: string, after: string, signal?: AbortSignal) =>
  request<FileListing>(`${filesAddress(place, '', dir)}${after ? `&after=${after}` : ''}`, { signal })

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
  request<FileInfo>(filesAddress(place, '/stat', path), { signal })
export const readFile = (place: FilePlace, path: string, signal?: AbortSignal) =>
  send(filesAddress(place, '/content', path), { signal })
export const contentAddress = (place: FilePlace, path: string) => filesAddress(place, '/content', path)
export const zipAddress = (place: FilePlace, paths: readonly string[], name: string) =>
  `${filesAddress(place, '/zip', paths[0] ?? '', { name })}${paths
    .slice(1)
    .map((path) => `&path=${path}`)
    .join('')}`
export const makeDirectory = (place: FilePlace, path: string, parents = false) =>
  request<undefined>(filesAddress(place, '/directory', path, { parents: parents ? 1 : undefined }), { method: 'POST' })
export const moveFile = (place: FilePlace, from: string, to: string) =>
  request<undefined>(`${filesAddress(place, '/move', from)}&to=${to}`, { method: 'POST' })
export const removeFile = (place: FilePlace, path: string, signal?: AbortSignal) =>
  request<undefined>(filesAddress(place, '', path, { recursive: 1 }), { method: 'DELETE', signal })

export const uploadState = (place: FilePlace, path: string, key: string, signal?: AbortSignal) =>
  request<UploadState>(filesAddress(place, '/upload', path, { key }), { signal })
export const dropUpload = (place: FilePlace, path: string, key: string) =>
  request<undefined>(filesAddress(place, '/upload', path, { key }), { method: 'DELETE' })
export const finishUpload = (
  place: FilePlace,
  path: string,
  key: string,
  body: FinishRequest & { conflict: Conflict },
  signal?: AbortSignal,
) => request<FileInfo>(filesAddress(place, '/upload', path, { key }), { method: 'POST', body, signal })

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
    call.open('PUT', filesAddress(place, '/upload', path, { key, offset }))
    call.upload.onprogress = (event) => progress(event.loaded)
    call.onloadend = () => signal.removeEventListener('abort', stop)
    call.onabort = () => reject(new DOMException('cancelled', 'AbortError'))
    call.onerror = () => reject(unanswered(i18next.t('problem.uploadHint')))
    call.onload = () => {
      try {
        const answer = JSON.parse(call.responseText) as UploadState & { code: string; message: string }
        if (call.status < 400) resolve(answer)
        else reject(new ApiProblem(answer, call.status))
      } catch {
        reject(unexplained(call.status))
      }
    }
    call.send(piece)
  })
}
