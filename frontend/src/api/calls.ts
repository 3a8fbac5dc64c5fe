// Every endpoint of /api/v1 that the page uses, one function each.
import { address, request, send, type QueryParams } from './client'
import type {
  Agent,
  AgentAnswer,
  AgentRemoval,
  AgentRequest,
  AgentUpdate,
  App,
  AuditEntry,
  Check,
  Demo,
  DemoLid,
  DemoStart,
  DemoStarted,
  DeviceBoard,
  Diagnostics,
  DevicePoint,
  DirectoryListing,
  Environment,
  EnvironmentFile,
  IdlePolicy,
  IdleSimulation,
  Image,
  ImageSending,
  Launched,
  LaunchManyRequest,
  LaunchRequest,
  Link,
  LogTail,
  Machine,
  Opened,
  OpenRequest,
  Notifier,
  Operation,
  PairCode,
  PairedDevice,
  KeyRotation,
  PairRequest,
  PersonLimit,
  PersonLimits,
  Phase,
  Preset,
  PresetRequest,
  PresetUpdate,
  Preview,
  PromptAnswer,
  Recent,
  Recipe,
  RecipeField,
  RecipePair,
  RecentUpdate,
  ResourceSummary,
  Session,
  Settings,
  SettingsFile,
  Spec,
  SSHAccess,
  SSHSetup,
  SSHTest,
  Terminal,
  TerminalRequest,
  TerminalSearch,
  Usage,
  UsageBucket,
  UsageBy,
  UsageReport,
  Version,
} from './types.gen'
import type { RecipeSource } from '@/lib/recipe'

const root = '/api/v1'
const sessionPath = (id: string, rest = '') => `${root}/sessions/${encodeURIComponent(id)}${rest}`

export const fetchVersion = (signal?: AbortSignal) => request<Version>(`${root}/version`, { signal })
export const fetchDemo = (signal?: AbortSignal) => request<Demo>(`${root}/demo`, { signal })
export const startDemo = (body: DemoStart) => request<DemoStarted>(`${root}/demo/start`, { method: 'POST', body })
export const setDemoLid = (body: DemoLid) => request<Demo>(`${root}/demo/lid`, { method: 'PUT', body })
/** The checks of this computer, or of an agent's machine. */
export const fetchDoctor = (signal?: AbortSignal, agent?: string) =>
  request<Check[]>(`${root}/doctor`, { signal, query: { agent } })
export const fetchMachines = (signal?: AbortSignal) => request<Machine[]>(`${root}/machines`, { signal })
export const fetchDirectory = (agent: string, path: string, signal?: AbortSignal) =>
  request<DirectoryListing>(`${root}/machines/${encodeURIComponent(agent)}/directories`, {
    query: { path: path || undefined },
    signal,
  })
export const fetchImages = (signal?: AbortSignal) => request<Image[]>(`${root}/images`, { signal })
/** Brings an image from one agent to another without a registry; the work goes on as an operation. */
export const sendImage = (body: ImageSending) => request<Operation>(`${root}/images/send`, { method: 'POST', body })
export const fetchEnvironmentFile = (signal?: AbortSignal) =>
  request<EnvironmentFile>(`${root}/environments/file`, { signal })
export const fetchEnvironments = (signal?: AbortSignal) => request<Environment[]>(`${root}/environments`, { signal })
export const fetchPresets = (signal?: AbortSignal) => request<Preset[]>(`${root}/presets`, { signal })

export const createPreset = (preset: PresetRequest) =>
  request<Preset>(`${root}/presets`, { method: 'POST', body: preset })
export const updatePreset = (id: string, change: PresetUpdate) =>
  request<Preset>(`${root}/presets/${encodeURIComponent(id)}`, { method: 'PATCH', body: change })
export const deletePreset = (id: string) =>
  request<undefined>(`${root}/presets/${encodeURIComponent(id)}`, { method: 'DELETE' })

const agentPath = (name: string, rest = '') => `${root}/agents/${encodeURIComponent(name)}${rest}`
const operationPath = (id: string, rest = '') => `${root}/operations/${encodeURIComponent(id)}${rest}`

export const fetchAgents = (signal?: AbortSignal) => request<Agent[]>(`${root}/agents`, { signal })
/** Adds an agent, or with probe only looks; the work goes on as an operation. */
export const addAgent = (body: AgentRequest) => request<Operation>(`${root}/agents`, { method: 'POST', body })
export const updateAgent = (name: string, body: AgentUpdate) =>
  request<Agent>(agentPath(name), { method: 'PATCH', body })
export const removeAgent = (name: string, body: AgentRemoval) =>
  request<Operation>(agentPath(name, '/remove'), { method: 'POST', body })
export const probeAgent = (name: string) => request<Operation>(agentPath(name, '/probe'), { method: 'POST' })
export const upgradeAgent = (name: string) => request<Operation>(agentPath(name, '/upgrade'), { method: 'POST' })
export const reconnectAgent = (name: string) => request<Operation>(agentPath(name, '/reconnect'), { method: 'POST' })
export const answerAgent = (name: string, body: AgentAnswer) =>
  request<Agent>(agentPath(name, '/answer'), { method: 'POST', body })
export const fetchPairedDevices = (name: string, signal?: AbortSignal) =>
  request<PairedDevice[]>(agentPath(name, '/devices'), { signal })
export const revokeDevice = (name: string, fingerprint: string) =>
  request<undefined>(agentPath(name, `/devices/${encodeURIComponent(fingerprint)}`), { method: 'DELETE' })
export const rotateAgent = (name: string) => request<KeyRotation>(agentPath(name, '/rotate'), { method: 'POST' })
export const rotateKey = () => request<KeyRotation>(`${root}/key/rotate`, { method: 'POST' })
/** What is asked of the log of an agent; before: the time of the oldest entry that is known. */
export interface AuditQuery {
  limit: number
  before?: string
  owner?: string
  failed?: boolean
  security?: boolean
}

/** The newest of what was done with an agent that one rules and is asked for, oldest first. */
export const fetchAudit = (name: string, { failed, security, ...asked }: AuditQuery, signal?: AbortSignal) =>
  request<AuditEntry[]>(agentPath(name, '/audit'), {
    query: { ...asked, ...(failed ? { failed: '1' } : {}), ...(security ? { security: '1' } : {}) },
    signal,
  })
export const fetchLimits = (name: string, signal?: AbortSignal) =>
  request<PersonLimits>(agentPath(name, '/limits'), { signal })
const limitPath = (name: string, owner: string) => agentPath(name, `/limits/${encodeURIComponent(owner)}`)
export const setLimit = (name: string, owner: string, body: PersonLimit) =>
  request<undefined>(limitPath(name, owner), { method: 'PUT', body })
export const unsetLimit = (name: string, owner: string) =>
  request<undefined>(limitPath(name, owner), { method: 'DELETE' })
export const makePairCode = (name: string, body: PairRequest) =>
  request<PairCode>(agentPath(name, '/pair'), { method: 'POST', body })
export const fetchOperations = (signal?: AbortSignal) => request<Operation[]>(`${root}/operations`, { signal })
export const answerOperation = (id: string, body: PromptAnswer) =>
  request<Operation>(operationPath(id, '/answer'), { method: 'POST', body })
export const cancelOperation = (id: string) => request<Operation>(operationPath(id, '/cancel'), { method: 'POST' })

export const fetchDevices = (signal?: AbortSignal) => request<DeviceBoard[]>(`${root}/devices`, { signal })
/** Samples of a device; without since those of the last hour. */
export const fetchDeviceHistory = (agent: string, device: string, since: string | undefined, signal?: AbortSignal) =>
  request<DevicePoint[]>(
    `${root}/machines/${encodeURIComponent(agent)}/devices/${encodeURIComponent(device)}/history`,
    { query: { since }, signal },
  )
export const fetchResources = (signal?: AbortSignal) => request<ResourceSummary[]>(`${root}/resources`, { signal })

export interface AccountsQuery {
  /** A time, or a day such as 2031-05-01. */
  from?: string
  to?: string
  bucket?: UsageBucket
  by?: UsageBy
  label?: string
}
const accountsParams = ({ from, to, bucket, by, label }: AccountsQuery): QueryParams => ({
  from,
  to,
  bucket: bucket || undefined,
  by: by || undefined,
  label: label || undefined,
})
export const fetchAccounts = (query: AccountsQuery, signal?: AbortSignal) =>
  request<UsageReport>(`${root}/usage`, { query: accountsParams(query), signal })
/** Address of the same as a CSV table. */
export const accountsCsv = (query: AccountsQuery) => address(`${root}/usage.csv`, accountsParams(query))

export interface SessionsQuery {
  state?: 'live' | 'finished' | 'all'
  limit?: number
  offset?: number
}
export const fetchSessions = (query: SessionsQuery, signal?: AbortSignal) =>
  request<Session[]>(`${root}/sessions`, { query: query as QueryParams, signal })
export const fetchSession = (id: string, signal?: AbortSignal) => request<Session>(sessionPath(id), { signal })
export const launchSession = (body: LaunchRequest) => request<Session>(`${root}/sessions`, { method: 'POST', body })
export const launchSessions = (body: LaunchManyRequest) =>
  request<Launched[]>(`${root}/launches`, { method: 'POST', body })
/** What a launch would do, for an owner; empty: oneself. */
export const previewSpec = (spec: Spec, owner: string, signal?: AbortSignal) =>
  request<Preview>(`${root}/preview`, { method: 'POST', body: spec, query: { owner: owner || undefined }, signal })
export const renameSession = (id: string, name: string) =>
  request<Session>(sessionPath(id), { method: 'PATCH', body: { name } })
export const setPriority = (id: string, priority: number) =>
  request<Session>(sessionPath(id), { method: 'PATCH', body: { priority } })
export const setTags = (id: string, tags: string[]) =>
  request<Session>(sessionPath(id), { method: 'PATCH', body: { tags } })
/** Protects a session from being reclaimed as idle, for a length such as 4h. */
export const keepSession = (id: string, length: string) =>
  request<Session>(sessionPath(id, '/keep'), { method: 'POST', body: { for: length } })
export const simulateIdle = (id: string, policy: IdlePolicy, signal?: AbortSignal) =>
  request<IdleSimulation>(sessionPath(id, '/idle-simulation'), { method: 'POST', body: policy, signal })
export const terminateSession = (id: string, forced: boolean) =>
  request<Session>(sessionPath(id, '/terminate'), { method: 'POST', body: { forced } })
export const fetchHistory = (id: string, signal?: AbortSignal) =>
  request<Phase[]>(sessionPath(id, '/history'), { signal })
export const fetchUsage = (id: string, signal?: AbortSignal) => request<Usage[]>(sessionPath(id, '/usage'), { signal })

export interface LogsQuery {
  kernel?: string
  follow?: boolean
  tail?: number
  timestamps?: boolean
}
/** Opens a log as a stream of text; with follow it stays open until the session ends. */
export const openLogs = (id: string, query: LogsQuery, signal?: AbortSignal) =>
  send(sessionPath(id, '/logs'), {
    query: {
      kernel: query.kernel,
      follow: query.follow ? 1 : undefined,
      tail: query.tail,
      timestamps: query.timestamps ? 1 : undefined,
    },
    signal,
  })

export const fetchTerminals = (id: string, signal?: AbortSignal) =>
  request<Terminal[]>(sessionPath(id, '/terminals'), { signal })
export const openTerminal = (id: string, body: TerminalRequest) =>
  request<Terminal>(sessionPath(id, '/terminals'), { method: 'POST', body })
export const closeTerminal = (id: string, terminal: string) =>
  request<undefined>(sessionPath(id, `/terminals/${encodeURIComponent(terminal)}`), { method: 'DELETE' })
export const searchTerminals = (id: string, q: string, signal?: AbortSignal) =>
  request<TerminalSearch>(sessionPath(id, '/terminal-search'), { query: { q }, signal })
/** Path of what a shell has printed, as a text. */
export const terminalOutputPath = (id: string, terminal: string) =>
  sessionPath(id, `/terminals/${encodeURIComponent(terminal)}/output`)
/** Path of the WebSocket that joins a shell. */
export const terminalAttachPath = (id: string, terminal: string) =>
  sessionPath(id, `/terminals/${encodeURIComponent(terminal)}/attach`)

/** How one's own ssh reaches a running session. */
export const fetchSSHAccess = (id: string, signal?: AbortSignal) =>
  request<SSHAccess>(sessionPath(id, '/ssh'), { signal })
export const testSSH = (id: string, signal?: AbortSignal) =>
  request<SSHTest>(sessionPath(id, '/ssh/test'), { method: 'POST', body: {}, signal })
export const setSSHInstalled = (installed: boolean) =>
  request<SSHSetup>(`${root}/ssh`, { method: 'PUT', body: { installed } })

export const fetchApps = (id: string, signal?: AbortSignal) => request<App[]>(sessionPath(id, '/apps'), { signal })
export const openApp = (id: string, app: string, body: OpenRequest, signal?: AbortSignal) =>
  request<Opened>(sessionPath(id, `/apps/${encodeURIComponent(app)}/open`), { method: 'POST', body, signal })
export const closeDoor = (id: string, app: string) =>
  request<undefined>(sessionPath(id, `/apps/${encodeURIComponent(app)}/door`), { method: 'DELETE' })
export const stopApp = (id: string, app: string) =>
  request<undefined>(sessionPath(id, `/apps/${encodeURIComponent(app)}/stop`), { method: 'POST', body: {} })

export const fetchRecents = (signal?: AbortSignal) => request<Recent[]>(`${root}/recents`, { signal })
export const updateRecent = (id: string, change: RecentUpdate) =>
  request<Recent>(`${root}/recents/${encodeURIComponent(id)}`, { method: 'PATCH', body: change })
export const deleteRecent = (id: string) =>
  request<undefined>(`${root}/recents/${encodeURIComponent(id)}`, { method: 'DELETE' })
/** What a session or a recent launch was asked for, to be kept and launched again. */
export const fetchRecipe = ({ kind, id }: RecipeSource, signal?: AbortSignal) =>
  request<Recipe>(
    kind === 'session' ? sessionPath(id, '/recipe') : `${root}/recents/${encodeURIComponent(id)}/recipe`,
    { signal },
  )
/** Reads the text of a recipe; nothing is launched. */
export const readRecipe = (yaml: string) => request<Spec>(`${root}/recipes/read`, { method: 'POST', body: { yaml } })
/** What a slipway:// link asks for; nothing of it is done. */
export const readLink = (url: string, signal?: AbortSignal) =>
  request<Link>(`${root}/links/read`, { method: 'POST', body: { url }, signal })
export const compareRecipes = (body: RecipePair, signal?: AbortSignal) =>
  request<RecipeField[]>(`${root}/recipes/compare`, { method: 'POST', body, signal })
export const fetchSettings = (signal?: AbortSignal) => request<Settings>(`${root}/settings`, { signal })
export const fetchSettingsFile = (signal?: AbortSignal) => request<SettingsFile>(`${root}/settings/file`, { signal })
export const patchSetting = (name: string, value: string | null) =>
  request<SettingsFile>(`${root}/settings/file/${encodeURIComponent(name)}`, { method: 'PATCH', body: { value } })
export const fetchNotifier = (signal?: AbortSignal) => request<Notifier>(`${root}/notifier`, { signal })
export const tryNotice = () => request<undefined>(`${root}/notifier`, { method: 'POST' })
export const fetchLog = (signal?: AbortSignal) => request<LogTail>(`${root}/log`, { signal })
export const fetchDiagnostics = (signal?: AbortSignal) => request<Diagnostics>(`${root}/diagnostics`, { signal })
export const putSettings = (settings: Settings) =>
  request<Settings>(`${root}/settings`, { method: 'PUT', body: settings })
