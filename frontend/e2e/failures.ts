import type { Reporter, TestCase, TestModule } from 'vitest/node'

interface Failure {
  readonly where: string
  readonly message: string
}

const colours = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g')

function failures(module: TestModule): Failure[] {
  const ofTest = (test: TestCase): Failure[] =>
    (test.result().errors ?? []).map(({ message }) => ({
      where: `${module.relativeModuleId} > ${test.fullName}`,
      message,
    }))
  const ofHooks = [...module.children.allSuites()].flatMap((suite) =>
    suite.errors().map(({ message }) => ({ where: `${module.relativeModuleId} > ${suite.fullName}`, message })),
  )
  const ofModule = module.errors().map(({ message }) => ({ where: module.relativeModuleId, message }))
  return [...ofModule, ...ofHooks, ...[...module.children.allTests('failed')].flatMap(ofTest)]
}

/** FailureList ends what a run prints with a line for each failure, where somebody who sees the end alone finds it. */
export class FailureList implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const all = modules.flatMap(failures)
    if (all.length === 0) return
    const lines = all.map(
      ({ where, message }) =>
        `FAILED ${where}: ${message.replace(colours, '').split('\n').slice(0, 3).join(' | ').slice(0, 400)}`,
    )
    setImmediate(() => process.stdout.write(`${lines.join('\n')}\n`))
  }
}
