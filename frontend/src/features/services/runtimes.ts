export const runtimeIds = ['llamacpp', 'vllm', 'sglang', 'tgi', 'nim', 'ollama', 'image', 'custom'] as const
export type RuntimeId = (typeof runtimeIds)[number]

/** Where a server finds its model: in a mounted folder, or by a name under which it downloads it. */
export type ModelSource = 'folder' | 'name'

/** Where the folder with the model is mounted. */
export const MODEL_TARGET = '/models'

interface Start {
  /** Path in the container, or the name of the model. */
  model: string
  source: ModelSource
  port: number
  /** Under which clients ask for the model. */
  served: string
  gpu: boolean
  /** Of the memory of the whole device, when a part is requested; undefined: all of it. */
  share: string | undefined
}

/** A model server as data: what is entered for it unless a person enters something else. */
export interface Runtime {
  /** As its makers write it; empty: it is no product. */
  name: string
  image: string
  /** The image to use with a GPU, where there is another. */
  gpuImage?: string
  port: number
  health: string
  /** From the start of its container to its first healthy answer: large models take minutes to load. */
  delay: string
  /** Empty: its image has the model. */
  sources: readonly ModelSource[]
  /** The usual file in the folder, where the model is one file. Empty: its command names no path in the folder. */
  file?: string
  /** It writes into the folder. */
  writes?: boolean
  env?: Record<string, string>
  /** Sets how much of the memory of a device it takes, as a part of the whole device. */
  vram?: string
  /** Program and arguments; empty: what the image starts by itself. */
  argv: (start: Start) => string[]
}

const load = '30m'

export const runtimes: Record<RuntimeId, Runtime> = {
  llamacpp: {
    name: 'llama.cpp',
    image: 'ghcr.io/ggml-org/llama.cpp:server',
    gpuImage: 'ghcr.io/ggml-org/llama.cpp:server-cuda',
    port: 8080,
    health: '/health',
    delay: '10m',
    sources: ['folder', 'name'],
    file: 'model.gguf',
    argv: ({ model, source, port, served, gpu }) => [
      '/app/llama-server',
      source === 'folder' ? '--model' : '--hf-repo',
      model,
      '--alias',
      served,
      '--port',
      String(port),
      '--metrics',
      ...(gpu ? ['--n-gpu-layers', '999'] : []),
    ],
  },
  vllm: {
    name: 'vLLM',
    image: 'vllm/vllm-openai:latest',
    port: 8000,
    health: '/health',
    delay: load,
    sources: ['name', 'folder'],
    vram: '--gpu-memory-utilization',
    argv: ({ model, port, served, share }) => [
      'vllm',
      'serve',
      model,
      '--served-model-name',
      served,
      '--port',
      String(port),
      ...(share ? ['--gpu-memory-utilization', share] : []),
    ],
  },
  sglang: {
    name: 'SGLang',
    image: 'lmsysorg/sglang:latest',
    port: 9001,
    health: '/health',
    delay: load,
    sources: ['name', 'folder'],
    vram: '--mem-fraction-static',
    argv: ({ model, port, served, share }) => [
      'python3',
      '-m',
      'sglang.launch_server',
      '--model-path',
      model,
      '--served-model-name',
      served,
      '--port',
      String(port),
      ...(share ? ['--mem-fraction-static', share] : []),
    ],
  },
  tgi: {
    name: 'TGI',
    image: 'ghcr.io/huggingface/text-generation-inference:latest',
    port: 3000,
    health: '/info',
    delay: load,
    sources: ['name', 'folder'],
    vram: '--cuda-memory-fraction',
    argv: ({ model, port, share }) => [
      'text-generation-launcher',
      '--model-id',
      model,
      '--port',
      String(port),
      ...(share ? ['--cuda-memory-fraction', share] : []),
    ],
  },
  nim: {
    name: 'NVIDIA NIM',
    image: 'nvcr.io/nim/meta/llama-3.1-8b-instruct:latest',
    port: 8000,
    health: '/v1/health/ready',
    delay: load,
    sources: [],
    argv: () => [],
  },
  ollama: {
    name: 'Ollama',
    image: 'ollama/ollama:latest',
    port: 11434,
    health: '/',
    delay: '2m',
    sources: ['folder'],
    file: '',
    writes: true,
    env: { OLLAMA_MODELS: MODEL_TARGET },
    argv: () => ['ollama', 'serve'],
  },
  image: { name: '', image: '', port: 8000, health: '/health', delay: load, sources: [], argv: () => [] },
  custom: {
    name: '',
    image: '',
    port: 8080,
    health: '/health',
    delay: load,
    sources: ['folder'],
    file: '',
    argv: () => [],
  },
}
