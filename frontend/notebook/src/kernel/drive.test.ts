import { describe, expect, it } from 'vitest'
import { DiskError, mountDisk, type Disk, type EmscriptenFS } from './drive'

class Errno extends Error {
  constructor(readonly errno: number) {
    super(String(errno))
  }
}

interface Node {
  parent: Node
  name: string
  mode: number
  node_ops: Record<string, (...args: unknown[]) => unknown>
  stream_ops: Record<string, (...args: unknown[]) => unknown>
}

/** A disk in memory that notes what is done to it, and the root that is mounted over it. */
function mounted(files: Record<string, string>) {
  const done: string[] = []
  const held = (path: string) => {
    const text = files[path]
    if (text === undefined) throw new DiskError('ENOENT')
    return text
  }
  const disk: Disk = {
    stat: (path) =>
      path === '' || path === '/dir'
        ? { mode: 0o040755, size: 0, modified: 5 }
        : { mode: 0o100644, size: held(path).length, modified: 5 },
    list: () => Object.keys(files).map((path) => path.slice(1)),
    readlink: () => 'target',
    read: (path, offset, length) => new TextEncoder().encode(held(path).slice(offset, offset + length)),
    change: (op, path, more = {}, body) =>
      void done.push([op, path, ...Object.values(more), body ? `${body.length} bytes` : ''].join(' ').trim()),
  }
  let root: Node | undefined
  const fs = {
    createNode: (parent: Node | null, name: string, mode: number) => {
      const node = { name, mode } as Node
      node.parent = parent ?? node
      return node
    },
    hashRemoveNode: () => {},
    ErrnoError: Errno,
    mkdirTree: () => {},
    mount: (type: { mount: (mount: unknown) => unknown }) => {
      root = type.mount({}) as Node
    },
    chdir: () => {},
  }
  mountDisk(fs as unknown as EmscriptenFS, disk, '/home/work')
  return { root: root!, done }
}

describe('the disk of Python', () => {
  it('reads and writes through, at the place that is meant', () => {
    const { root, done } = mounted({ '/a.txt': 'hello world' })
    const node = root.node_ops.lookup!(root, 'a.txt') as Node
    const buffer = new Uint8Array(8)
    expect(node.stream_ops.read!({ node }, buffer, 2, 5, 6)).toBe(5)
    expect(new TextDecoder().decode(buffer.slice(2, 7))).toBe('world')
    expect(node.stream_ops.write!({ node }, new Uint8Array(20), 4, 10, 3)).toBe(10)
    node.node_ops.setattr!(node, { size: 0 })
    expect(done).toEqual(['write /a.txt 3 10 bytes', 'truncate /a.txt 0'])
  })
  it('writes much in parts', () => {
    const { root, done } = mounted({ '/a': '' })
    const node = root.node_ops.lookup!(root, 'a') as Node
    expect(node.stream_ops.write!({ node }, new Uint8Array(5 << 20), 0, 5 << 20, 0)).toBe(5 << 20)
    expect(done).toEqual([`write /a 0 ${4 << 20} bytes`, `write /a ${4 << 20} ${1 << 20} bytes`])
  })
  it('finds the end of a file as it is now', () => {
    const { root } = mounted({ '/a': 'four' })
    const node = root.node_ops.lookup!(root, 'a') as Node
    expect(node.stream_ops.llseek!({ node, position: 1 }, -1, 2)).toBe(3)
    expect(node.stream_ops.llseek!({ node, position: 1 }, 1, 1)).toBe(2)
    expect(() => node.stream_ops.llseek!({ node, position: 0 }, -1, 0)).toThrow(new Errno(28))
  })
  it('says what went wrong in the numbers of the C library', () => {
    const { root } = mounted({})
    expect(() => root.node_ops.lookup!(root, 'none')).toThrow(new Errno(44))
  })
  it('makes directories, moves and removes by whole paths', () => {
    const { root, done } = mounted({ '/a': '' })
    const dir = root.node_ops.lookup!(root, 'dir') as Node
    const made = root.node_ops.mknod!(dir, 'inner', 0o040755) as Node
    const file = root.node_ops.lookup!(root, 'a') as Node
    root.node_ops.rename!(file, made, 'b')
    root.node_ops.unlink!(made, 'b')
    root.node_ops.rmdir!(dir, 'inner')
    expect(done).toEqual(['mkdir /dir/inner', 'rename /a /dir/inner/b', 'unlink /dir/inner/b', 'rmdir /dir/inner'])
  })
})
