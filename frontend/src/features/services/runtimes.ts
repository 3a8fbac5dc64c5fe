import { GPU_MEMORY_SHARE, MODEL_TARGET, type ModelSource, type Runtime } from '@/api/runtimes.gen'

/** What a server serves, and with what. */
export interface Start {
  source: ModelSource
  /** Under which the server downloads the model, or its path in the folder; empty: the usual one. */
  model: string
  /** Under which clients ask for the model. */
  served: string
  port: number
  gpu: boolean
  /** A part of a device is requested. */
  part: boolean
}

/** The command with which a server serves a model; empty: what its image starts by itself. */
export function argvOf(runtime: Runtime, { source, model, served, port, gpu, part }: Start): string[] {
  const path = [MODEL_TARGET, model.replace(/^\/+|\/+$/g, '') || runtime.file].filter(Boolean).join('/')
  const values: Record<string, string> = {
    '{model}': source === 'folder' ? path : model,
    '{served}': served,
    '{port}': String(port),
  }
  const used = { folder: source === 'folder', name: source === 'name', gpu, part }
  return runtime.command
    .filter(({ when }) => !when || used[when])
    .flatMap(({ words }) => words)
    .map((word) => word.replaceAll(/\{\w+\}/g, (hole) => values[hole] ?? hole))
}

/** The flag that sets how much of the memory of a device a server takes; undefined: it has none. */
export const memoryFlag = (runtime: Runtime): string | undefined =>
  runtime.command.find(({ words }) => words.includes(GPU_MEMORY_SHARE))?.words[0]
