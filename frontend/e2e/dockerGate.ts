import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * DockerGate stands before a Docker daemon, passes everything through, and refuses commits while it is told to, as a
 * full disk does.
 */
export class DockerGate {
  readonly #dir = mkdtempSync(join(tmpdir(), 'slipway-gate-'))
  readonly #server: Server
  readonly #open = new Set<Socket>()
  full = false

  constructor(daemon: string) {
    this.#server = createServer((near) => {
      const far = createConnection(daemon.replace(/^unix:\/\//, ''))
      for (const end of [near, far]) {
        this.#open.add(end)
        end.on('close', () => this.#open.delete(end)).on('error', () => end.destroy())
      }
      near.on('data', (chunk: Buffer) => {
        if (this.full && /^POST \S*\/commit\?/.test(chunk.toString('latin1', 0, 256))) near.end(refusal)
        else far.write(chunk)
      })
      far.pipe(near)
      near.on('close', () => far.destroy())
    })
  }

  get address(): string {
    return `unix://${join(this.#dir, 'docker.sock')}`
  }

  async listen(): Promise<void> {
    await new Promise<void>((done) => this.#server.listen(join(this.#dir, 'docker.sock'), done))
  }

  close(): void {
    this.#server.close()
    for (const end of this.#open) end.destroy()
    rmSync(this.#dir, { recursive: true, force: true })
  }
}

const body = JSON.stringify({ message: 'write /var/lib/docker/layer: no space left on device' })
const refusal =
  `HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: ` +
  `${body.length}\r\nConnection: close\r\n\r\n${body}`
