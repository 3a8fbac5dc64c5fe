// The session's folder as the file system of Python: every call is one request
// to the session, answered before Python goes on. Nothing is kept here, so what
// a cell has written is there for the terminal at once, and the other way round.

/** Fails with the name of an error of the system. */
export class DiskError extends Error {
  constructor(readonly errno: string) {
    super(errno)
  }
}

/** A file as stat tells of it. */
export interface Stat {
  mode: number
  size: number
  modified: number
}

/** What is asked of the session's files; see the notebook's server. */
export interface Disk {
  stat(path: string): Stat
  list(path: string): string[]
  readlink(path: string): string
  read(path: string, offset: number, length: number): Uint8Array
  change(op: string, path: string, more?: Record<string, string | number>, body?: Uint8Array): void
}

/** The session's files by requests that block, which only a worker may make. */
export function remoteDisk(base: string): Disk {
  const call = (
    method: string,
    op: string,
    path: string,
    more: Record<string, string | number> = {},
    body?: Uint8Array,
  ): ArrayBuffer => {
    const query = new URLSearchParams({ path })
    for (const [name, value] of Object.entries(more)) query.set(name, String(value))
    const request = new XMLHttpRequest()
    request.open(method, `${base}api/disk/${op}?${query.toString()}`, false)
    request.responseType = 'arraybuffer'
    try {
      request.send(body ? new Uint8Array(body) : null)
    } catch {
      throw new DiskError('EIO')
    }
    const answer = request.response as ArrayBuffer
    if (request.status >= 200 && request.status < 300) return answer
    throw new DiskError(errnoOf(answer))
  }
  const json = (op: string, path: string): unknown => JSON.parse(new TextDecoder().decode(call('GET', op, path)))
  return {
    stat: (path) => json('stat', path) as Stat,
    list: (path) => json('list', path) as string[],
    readlink: (path) => json('readlink', path) as string,
    read: (path, offset, length) => new Uint8Array(call('GET', 'read', path, { offset, length })),
    change: (op, path, more, body) => void call('POST', op, path, more, body),
  }
}

function errnoOf(answer: ArrayBuffer): string {
  try {
    const { errno } = JSON.parse(new TextDecoder().decode(answer)) as { errno?: unknown }
    return typeof errno === 'string' ? errno : 'EIO'
  } catch {
    return 'EIO'
  }
}

/** The numbers of errors as the C library of Python has them. */
const numbers: Record<string, number> = {
  EACCES: 2,
  EBUSY: 10,
  EEXIST: 20,
  EINVAL: 28,
  EIO: 29,
  EISDIR: 31,
  ELOOP: 32,
  ENAMETOOLONG: 37,
  ENOENT: 44,
  ENOSPC: 51,
  ENOTDIR: 54,
  ENOTEMPTY: 55,
  EPERM: 63,
  EROFS: 69,
  EXDEV: 75,
}

const linkTo = 0o120000
const kindOf = 0o170000
const regular = 0o100000
/** How much one request writes. */
const atOnce = 4 << 20

interface Node {
  mount: { opts: unknown }
  parent: Node
  name: string
  mode: number
  node_ops: NodeOps
  stream_ops: StreamOps
}

interface Stream {
  node: Node
  position: number
}

interface Attributes {
  size?: number
  mode?: number
}

type NodeOps = Record<string, unknown>
type StreamOps = Record<string, unknown>

/** The part of Emscripten's file system that a file system of one's own stands on. */
export interface EmscriptenFS {
  createNode(parent: Node | null, name: string, mode: number, dev: number): Node
  hashRemoveNode(node: Node): void
  ErrnoError: new (errno: number) => Error
  mkdirTree(path: string): void
  mount(type: { mount: (mount: unknown) => Node }, options: object, path: string): void
  chdir(path: string): void
}

/** Shows a disk at a path of Python's file system. */
export function mountDisk(fs: EmscriptenFS, disk: Disk, at: string): void {
  const attempt = <T>(what: () => T): T => {
    try {
      return what()
    } catch (error) {
      throw new fs.ErrnoError(numbers[error instanceof DiskError ? error.errno : 'EIO'] ?? 29)
    }
  }
  const pathOf = (node: Node): string => (node.parent === node ? '' : `${pathOf(node.parent)}/${node.name}`)
  const inside = (parent: Node, name: string) => `${pathOf(parent)}/${name}`
  // The file system remembers nodes by name, and would go on doing so after the
  // terminal has put something else there.
  const nodeOf = (parent: Node | null, name: string, mode: number): Node => {
    const node = fs.createNode(parent, name, mode, 0)
    node.node_ops = nodeOps
    node.stream_ops = streamOps
    if (parent) fs.hashRemoveNode(node)
    return node
  }

  const nodeOps: NodeOps = {
    getattr: (node: Node) => {
      const { mode, size, modified } = attempt(() => disk.stat(pathOf(node)))
      const time = new Date(modified)
      return {
        dev: 1,
        ino: 1,
        mode,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size,
        atime: time,
        mtime: time,
        ctime: time,
        blksize: 4096,
        blocks: Math.ceil(size / 512),
      }
    },
    setattr: (node: Node, { size, mode }: Attributes) =>
      attempt(() => {
        if (size !== undefined) disk.change('truncate', pathOf(node), { size })
        if (mode !== undefined) disk.change('chmod', pathOf(node), { mode: mode & 0o777 })
      }),
    lookup: (parent: Node, name: string) => nodeOf(parent, name, attempt(() => disk.stat(inside(parent, name))).mode),
    mknod: (parent: Node, name: string, mode: number) => {
      if ((mode & kindOf) === regular || (mode & kindOf) === 0)
        attempt(() => disk.change('create', inside(parent, name), { mode: mode & 0o777 }))
      else attempt(() => disk.change('mkdir', inside(parent, name)))
      return nodeOf(parent, name, mode)
    },
    rename: (node: Node, to: Node, name: string) => {
      attempt(() => disk.change('rename', pathOf(node), { to: inside(to, name) }))
      node.parent = to
      node.name = name
    },
    unlink: (parent: Node, name: string) => attempt(() => disk.change('unlink', inside(parent, name))),
    rmdir: (parent: Node, name: string) => attempt(() => disk.change('rmdir', inside(parent, name))),
    readdir: (node: Node) => ['.', '..', ...attempt(() => disk.list(pathOf(node)))],
    symlink: (parent: Node, name: string, target: string) => {
      attempt(() => disk.change('symlink', inside(parent, name), { target }))
      return nodeOf(parent, name, linkTo | 0o777)
    },
    readlink: (node: Node) => attempt(() => disk.readlink(pathOf(node))),
  }

  const streamOps: StreamOps = {
    read: (stream: Stream, buffer: Uint8Array, offset: number, length: number, position: number) => {
      const data = attempt(() => disk.read(pathOf(stream.node), position, length))
      buffer.set(data, offset)
      return data.length
    },
    write: (stream: Stream, buffer: Uint8Array, offset: number, length: number, position: number) => {
      for (let done = 0; done < length; done += atOnce) {
        const part = buffer.slice(offset + done, offset + Math.min(length, done + atOnce))
        attempt(() => disk.change('write', pathOf(stream.node), { offset: position + done }, part))
      }
      return length
    },
    llseek: (stream: Stream, offset: number, whence: number) => {
      const from =
        whence === 1 ? stream.position : whence === 2 ? attempt(() => disk.stat(pathOf(stream.node))).size : 0
      if (from + offset < 0) throw new fs.ErrnoError(numbers.EINVAL ?? 28)
      return from + offset
    },
  }

  fs.mkdirTree(at)
  fs.mount({ mount: () => nodeOf(null, '/', 0o040755) }, {}, at)
}
