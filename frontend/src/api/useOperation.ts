import { useQueryClient } from '@tanstack/react-query'
import { App } from 'antd'
import { useCallback } from 'react'
import { applyOperation } from './book'

import { asProblem, call } from './client'
import type { Operation } from './types.gen'

interface OperationActions {
  onAnswer: (prompt: string, text: string) => Promise<void>
  onCancel: () => Promise<void>
}

/** Answers what an operation asks and cancels it; a refusal is told in a message. */
export function useOperationActions(id: string): OperationActions {
  const client = useQueryClient()
  const { message } = App.useApp()
  const send = useCallback(
    async (call: Promise<Operation>) => {
      try {
        applyOperation(client, await call)
      } catch (error) {
        const problem = asProblem(error)
        void message.error([problem.message, problem.hint].filter(Boolean).join(' '))
      }
    },
    [client, message],
  )
  const onAnswer = useCallback(
    (prompt: string, text: string) => send(call('operation-answer', { path: { id }, body: { prompt, text } })),
    [id, send],
  )
  const onCancel = useCallback(() => send(call('operation-cancel', { path: { id } })), [id, send])
  return { onAnswer, onCancel }
}

/** Starts an operation, shows it at once, and gives it back; undefined where it was refused, which a message tells. */
export function useStartOperation(): (call: () => Promise<Operation>) => Promise<Operation | undefined> {
  const client = useQueryClient()
  const { message } = App.useApp()
  return useCallback(
    async (call) => {
      try {
        const operation = await call()
        applyOperation(client, operation)
        return operation
      } catch (error) {
        const problem = asProblem(error)
        void message.error([problem.message, problem.hint].filter(Boolean).join(' '))
        return undefined
      }
    },
    [client, message],
  )
}
