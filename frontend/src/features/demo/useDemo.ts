import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '@/api/client'

import { keys } from '@/api/keys'
import type { Demo } from '@/api/types.gen'
import { setClock } from '@/lib/now'

/** Asks what is shown, and has the page go by its clock. */
async function ask(signal: AbortSignal): Promise<Demo> {
  const demo = await call('demo', { signal })
  setClock(demo.active ? { speed: demo.speed, real: Date.parse(demo.real), shown: Date.parse(demo.shown) } : undefined)
  return demo
}

const ifActive = (demo: Demo) => (demo.active ? demo : undefined)

/** The demonstration that this page is of; nothing where what it shows is real. */
export const useDemo = (): Demo | undefined =>
  useQuery({ queryKey: keys.demo, queryFn: ({ signal }) => ask(signal), select: ifActive }).data

/** Closes the lid of the demo's laptop, which really cuts the tunnel, or opens it. */
export function useLid() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (closed: boolean) => call('demo-lid', { body: { closed } }),
    onSuccess: (demo) => client.setQueryData(keys.demo, demo),
  })
}
