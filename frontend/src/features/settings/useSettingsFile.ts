import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { call } from '@/api/client'

import { useSettings } from '@/api/hooks'
import { keys } from '@/api/keys'

/** The settings file, asked for again when a setting changes anywhere. */
export function useSettingsFile(onError: (error: unknown) => void) {
  const client = useQueryClient()
  const settings = useSettings().data
  useEffect(() => void client.invalidateQueries({ queryKey: keys.settingsFile }), [client, settings])
  const query = useQuery({
    queryKey: keys.settingsFile,
    queryFn: ({ signal }) => call('settings-file', { signal }),
    refetchOnWindowFocus: true,
  })
  const { mutate } = useMutation({
    mutationFn: ({ name, value }: { name: string; value: string | null }) =>
      call('setting-update', { path: { name }, body: { value } }),
    onSuccess: (file) => {
      client.setQueryData(keys.settingsFile, file)
      void client.invalidateQueries({ queryKey: keys.updates })
    },
    onError: (error) => {
      void client.invalidateQueries({ queryKey: keys.settingsFile })
      onError(error)
    },
  })
  return { query, change: (name: string, value: string | null) => mutate({ name, value }) }
}
