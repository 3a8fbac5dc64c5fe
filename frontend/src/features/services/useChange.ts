import { App } from 'antd'
import { asProblem } from '@/api/client'
import { useChangeService } from '@/api/services'
import type { Service, ServiceChange } from '@/api/types.gen'
import { hintText, messageText } from '@/lib/phrases'

/** Changes a service, and says why where that fails. change tells whether it was changed. */
export function useChange(service: Service): { busy: boolean; change: (what: ServiceChange) => Promise<boolean> } {
  const { message } = App.useApp()
  const mutation = useChangeService(service)
  const change = async (what: ServiceChange) => {
    try {
      await mutation.mutateAsync(what)
      return true
    } catch (error) {
      const problem = asProblem(error)
      // What is wrong with the field says more than that fields are wrong.
      const told = problem.fields[0] ?? problem
      void message.error([messageText(told), hintText(told)].filter(Boolean).join(' '))
      return false
    }
  }
  return { busy: mutation.isPending, change }
}
