import type { Reporter, TestCase, TestModule } from 'vitest/node'

const colours = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g')

/** The line of a failure: where it is, the start of what is wrong, and where the pages were. */
function line(where: string, message: string, pages: string[] = []): string {
  const said = message.replace(colours, '').split('\n').slice(0, 3).join(' | ').slice(0, 400)
  return [`FAILED ${where}: ${said}`, ...pages].join(' | at ')
}

function failures(module: TestModule): string[] {
  const ofTest = (test: TestCase): string[] =>
    (test.result().errors ?? []).map(({ message }) =>
      line(`${module.relativeModuleId} > ${test.fullName}`, message, test.meta().pages),
    )
  const ofHooks = [...module.children.allSuites()].flatMap((suite) =>
    suite.errors().map(({ message }) => line(`${module.relativeModuleId} > ${suite.fullName}`, message)),
  )
  const ofModule = module.errors().map(({ message }) => line(module.relativeModuleId, message))
  return [...ofModule, ...ofHooks, ...[...module.children.allTests('failed')].flatMap(ofTest)]
}

/** FailureList ends what a run prints with a line for each failure, where somebody who sees the end alone finds it. */
export class FailureList implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = modules.flatMap(failures)
    if (lines.length > 0) setImmediate(() => process.stdout.write(`${lines.join('\n')}\n`))
  }
}
