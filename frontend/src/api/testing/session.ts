import type { Account, Agent, DeviceBoard, DeviceState, Machine, ServiceUsage, Session, Settings } from '../types.gen'

/** A running session for tests, changed as asked for. */
export function makeSession(change: Partial<Session> = {}): Session {
  return {
    id: 'abcdefghij01',
    name: 'calm-reef',
    type: 'interactive',
    status: 'RUNNING',
    result: 'undefined',
    reason: '',
    exitCode: null,
    image: 'python:3.12',
    agent: 'local',
    owner: 'me',
    createdAt: '2026-01-02T03:04:05Z',
    startedAt: '2026-01-02T03:04:10Z',
    spec: { image: 'python:3.12', resources: { cpu: 2, memory: 2 * 1024 ** 3, shm: 64 * 1024 ** 2 } },
    kernels: [],
    warnings: [],
    grants: { cpus: [0, 1], memory: 2 * 1024 ** 3, gpus: [] },
    attempt: 1,
    revision: 1,
    priority: 10,
    dependsOn: [],
    tags: [],
    dependents: [],
    enforcement: '',
    idle: [],
    folders: [],
    ...change,
  }
}

export function makeMachine(change: Partial<Machine> = {}): Machine {
  return {
    agent: 'local',
    online: true,
    lastHeard: '2026-01-02T03:04:05Z',
    engine: 'docker',
    version: '0.1.0',
    hostname: 'desk',
    os: 'linux',
    arch: 'amd64',
    cpus: 8,
    memory: 16 * 1024 ** 3,
    usedCpus: 2,
    usedMemory: 2 * 1024 ** 3,
    loadCpu: 1.5,
    loadMemory: 3 * 1024 ** 3,
    diskFree: 100 * 1024 ** 3,
    diskTotal: 200 * 1024 ** 3,
    warnings: [],
    ...change,
  }
}

export function makeAgent(change: Partial<Agent> = {}): Agent {
  return {
    name: 'local',
    address: '',
    local: true,
    group: 'default',
    owner: 'me',
    role: 'admin',
    fingerprint: '',
    version: '0.1.0',
    upgrade: '',
    live: 0,
    connection: { state: 'connected', since: '2026-01-02T03:04:05Z', transport: 'local', carriers: 0, waits: '' },
    ...change,
  }
}

const GIB = 1024 ** 3

export function makeDevice(change: Partial<DeviceState> = {}): DeviceState {
  return {
    uuid: 'GPU-0',
    vendor: 'sim',
    model: 'Sim 80',
    index: 0,
    memory: 80 * GIB,
    reserved: GIB,
    instances: [],
    capabilities: [],
    free: 1000,
    memoryFree: 79 * GIB,
    level: 'watched',
    util: 0,
    memoryUsed: 0,
    power: 60_000,
    temperature: 34,
    holders: [],
    ...change,
  }
}

export function makeBoard(devices: DeviceState[] = [makeDevice()], change: Partial<DeviceBoard> = {}): DeviceBoard {
  return {
    agent: 'local',
    online: true,
    source: 'sim',
    text: '',
    quantum: 100,
    strategy: 'fill',
    attach: 'nodes',
    devices,
    at: '2026-01-02T03:04:05Z',
    ...change,
  }
}

export const testSettings: Settings = {
  theme: 'light',
  density: 'comfortable',
  language: 'en',
  closeKeeps: 'ask',
  terminalFont: 14,
  terminalFamily: '',
  terminalTheme: 'follow',
  terminalBell: 'visual',
  terminalPaste: 'runs',
  terminalReader: false,
  notifications: true,
  openApps: true,
  zoom: 100,
  autostart: false,
  keepHome: '0',
}

/** An account without any use for tests, changed as asked for. */
export function makeAccount(change: Partial<Account>): Account {
  return {
    start: '2026-01-02T00:00:00Z',
    kind: 'session',
    cpuMs: 0,
    allocCpuMs: 0,
    allocGpuMs: 0,
    busyGpuMs: 0,
    aboveGpuMs: 0,
    vramMiBMs: 0,
    vramPeak: 0,
    energyDynamic: 0,
    energyIdle: 0,
    coveredMs: 0,
    estimatedMs: 0,
    gapMs: 0,
    ...change,
  }
}

/** Accounts of a service to which nothing was sent for tests, changed as asked for. */
export function makeServiceUsage(change: Partial<ServiceUsage>): ServiceUsage {
  return {
    start: '2026-01-02T00:00:00Z',
    requests: 0,
    answered: 0,
    failed: 0,
    cut: 0,
    left: 0,
    refused: 0,
    limited: 0,
    promptTokens: 0,
    completionTokens: 0,
    bytesIn: 0,
    bytesOut: 0,
    firstWord: { p50Ms: 0, p99Ms: 0 },
    whole: { p50Ms: 0, p99Ms: 0 },
    cpuMs: 0,
    allocCpuMs: 0,
    allocGpuMs: 0,
    busyGpuMs: 0,
    vramMiBMs: 0,
    vramPeak: 0,
    energyDynamic: 0,
    energyIdle: 0,
    coveredMs: 0,
    estimatedMs: 0,
    gapMs: 0,
    ...change,
  }
}
