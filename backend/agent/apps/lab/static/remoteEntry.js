// An extension of JupyterLab 3 and 4 and of Jupyter Notebook 7. They show what a cell prints only in the page that ran
// it. This shows it in a page that was opened meanwhile, too: it asks Slipway's keeper of output for the runs that the
// page lacks and for what they have printed, and adds what the kernel sends from then on. It is loaded as it is, as a
// container of webpack's module federation.
;(() => {
  const nothing = { runs: [], recent: [], since: '' }
  const attempts = 5 // until the keeper knows a message that the page has
  const pause = 200 // ms between them
  const ended = ['restarting', 'autorestarting', 'terminating', 'dead']

  /** The runs of other pages in one notebook. */
  class Live {
    constructor(panel, context) {
      this.panel = panel
      this.context = context
      this.runs = new Map() // that this page shows, by the id of their request
      this.waiting = null // messages that came since the keeper was asked; null: it is not being asked
      this.again = false // it is to be asked once more
      this.proven = false // the kernel's messages come, so none is missed any more
      const session = panel.sessionContext
      session.iopubMessage.connect((_, message) => this.take(message))
      session.kernelChanged.connect(() => this.forget())
      session.statusChanged.connect((_, status) => ended.includes(status) && this.forget())
      session.connectionStatusChanged.connect((_, status) => status === 'connected' && this.begin())
    }

    get kernel() {
      return this.panel.sessionContext.session?.kernel
    }

    begin() {
      this.proven = false
      this.ask()
    }

    forget() {
      for (const run of this.runs.values()) if (!run.done) setRunning(run.cell, false)
      this.runs.clear()
    }

    take(message) {
      const starts = message.header.msg_type === 'execute_input'
      const asks = !this.proven || (starts && message.parent_header.session !== this.kernel?.clientId)
      this.proven = true
      if (asks) this.ask(message.header.msg_id)
      if (this.waiting) this.waiting.push(message)
      else this.show(message)
    }

    /** Asks which runs the page lacks, until the keeper knows the message that it is asked for. */
    async ask(about) {
      this.about = about ?? this.about
      this.again = true
      if (this.waiting) return
      this.waiting = []
      await this.context.ready
      for (let left = attempts; this.again && left > 0; left--) {
        this.again = false
        const { kernel, proven, about } = this
        const answer = await this.question(kernel)
        if (this.panel.isDisposed) return
        if (kernel !== this.kernel) this.again = true
        else this.attach(answer)
        for (const message of this.waiting.splice(0)) this.show(message)
        if (proven && answer.runs.length > 0) await this.question(kernel, [...this.runs.keys()])
        if (about && answer !== nothing && !answer.recent.includes(about)) {
          this.again = true
          await new Promise((resolve) => setTimeout(resolve, pause))
        }
      }
      for (const message of this.waiting) this.show(message)
      this.waiting = null
    }

    /** Asks the keeper, and says which runs this page shows. */
    async question(kernel, shown = []) {
      if (!kernel) return nothing
      const { path, contentsModel } = this.context
      const saved = contentsModel?.last_modified ?? ''
      const query = new URLSearchParams({ kernel: kernel.id, path, saved, client: kernel.clientId })
      for (const id of shown) query.append('shown', id)
      try {
        const answer = await fetch(`/slipway/live?${query}`)
        return answer.status === 200 ? await answer.json() : nothing
      } catch {
        return nothing
      }
    }

    attach(answer) {
      const recent = new Set(answer.recent)
      const had = ({ msg_id, date }) => recent.has(msg_id) || date < answer.since
      for (const { request, code, count, outputs, clearing, done } of answer.runs) {
        const cell = this.cellOf(code, count)
        if (!cell || cell.model.executionCount > count) continue // it was run again
        // The output area takes it for the request that it made itself, and disposes of it when the cell is run again.
        const future = { done: new Promise(() => {}), dispose: () => this.drop(request, future) }
        cell.outputArea.future = future
        const run = { cell, count, future, had, done: false }
        this.runs.set(request, run)
        cell.model.executionCount = null
        setRunning(cell, true)
        for (const output of outputs) future.onIOPub({ header: { msg_type: output.output_type }, content: output })
        if (clearing) future.onIOPub({ header: { msg_type: 'clear_output' }, content: { wait: true } })
        if (done) finish(run)
      }
    }

    drop(request, future) {
      if (this.runs.get(request)?.future === future) this.runs.delete(request)
    }

    /** Returns the cell of a run as the keeper finds it: the one with its source, of several the one with its count. */
    cellOf(code, count) {
      const alike = this.panel.content.widgets.filter(
        ({ model }) => model.type === 'code' && model.sharedModel.getSource().trim() === code.trim(),
      )
      const counted = alike.filter(({ model }) => model.executionCount === count)
      return alike.length === 1 ? alike[0] : counted.length === 1 ? counted[0] : undefined
    }

    show(message) {
      const type = message.header.msg_type
      const of = this.runs.get(message.parent_header.msg_id)
      for (const run of type === 'update_display_data' ? this.runs.values() : of ? [of] : []) {
        if (run.had(message.header)) continue
        run.future.onIOPub(message)
        if (type === 'status' && message.content.execution_state === 'idle') finish(run)
      }
    }
  }

  function finish(run) {
    run.done = true
    run.cell.model.executionCount = run.count
    setRunning(run.cell, false)
  }

  /** Shows whether a cell runs; the model of a cell knows it since JupyterLab 4.2. */
  function setRunning(cell, running) {
    if ('executionState' in cell.model) cell.model.executionState = running ? 'running' : 'idle'
    else cell.setPrompt(running ? '*' : String(cell.model.executionCount ?? ''))
  }

  const known = new WeakSet()
  const plugin = {
    id: 'slipway-live:plugin',
    autoStart: true,
    activate: (app) => {
      app.docRegistry.addWidgetExtension('Notebook', {
        createNew: (panel, context) => {
          if (known.has(context)) return // another view of the same document
          known.add(context)
          new Live(panel, context)
        },
      })
    },
  }
  window._JUPYTERLAB ??= {}
  window._JUPYTERLAB['slipway-live'] = { init() {}, get: async () => () => ({ __esModule: true, default: plugin }) }
})()
