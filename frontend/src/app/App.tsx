import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { useState } from 'react'
import { RouterProvider } from 'react-router/dom'
import { ApiProblem } from '@/api/client'
import { Appearance } from './Appearance'
import { LiveData } from './LiveData'
import { makeRouter } from './router'

function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 30_000,
        refetchOnWindowFocus: false,
        // What the server refused it refuses again; only silence is worth a second try.
        retry: (count, error) => count < 2 && error instanceof ApiProblem && error.status === 0,
        retryDelay: 400,
        networkMode: 'always',
      },
      mutations: { networkMode: 'always' },
    },
  })
}

export function App() {
  const [client] = useState(makeQueryClient)
  const [router] = useState(makeRouter)
  return (
    <QueryClientProvider client={client}>
      <LiveData>
        <Appearance>
          <RouterProvider router={router} />
        </Appearance>
      </LiveData>
    </QueryClientProvider>
  )
}
