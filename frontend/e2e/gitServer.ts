import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, normalize } from 'node:path'

const password = 'correct horse'

const git = (...words: string[]) => execFileSync('git', words, { stdio: 'ignore' })

/** A repository of the files in dir/work, served to a person who knows a password. */
export class GitServer {
  readonly password = password
  address = ''
  #server: Server | undefined

  async start(dir: string): Promise<void> {
    git('init', '-q', '-b', 'main', join(dir, 'work'))
    git('-C', join(dir, 'work'), 'add', '.')
    git('-C', join(dir, 'work'), '-c', 'user.name=ada', '-c', 'user.email=ada@example.com', 'commit', '-q', '-m', 'all')
    git('clone', '-q', '--bare', join(dir, 'work'), join(dir, 'paper.git'))
    git('-C', join(dir, 'paper.git'), 'update-server-info')
    const login = `Basic ${Buffer.from(`ada:${password}`).toString('base64')}`
    const server = createServer((request, response) => {
      if (request.headers.authorization !== login) {
        response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="papers"' }).end()
        return
      }
      try {
        response.end(readFileSync(join(dir, normalize(new URL(request.url ?? '', 'http://x').pathname))))
      } catch {
        response.writeHead(404).end()
      }
    })
    this.#server = server
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/paper.git`
  }

  stop(): void {
    this.#server?.close()
  }
}
