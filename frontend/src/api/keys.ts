/** The keys of everything that Query holds. Those marked live are kept current by the event channel. */
export const keys = {
  sessions: ['sessions'] as const, // live: SessionBook of live and the newest finished sessions
  finished: ['sessions-finished'] as const, // live: older finished sessions, fetched when asked for
  latestUsage: ['usage-latest'] as const, // live: newest sample of each session
  usage: (id: string) => ['usage', id] as const, // live once fetched
  loss: (id: string) => ['loss', id] as const,
  history: (id: string) => ['history', id] as const,
  session: (id: string) => ['session', id] as const, // one that the book does not hold
  moveOffers: (id: string) => ['move-offers', id] as const, // asked for again every few seconds
  relocation: (id: string, agent: string, copies: boolean) => ['relocation', id, agent, copies] as const,
  machines: ['machines'] as const, // live
  agents: ['agents'] as const, // live
  operations: ['operations'] as const, // live, newest first
  pairedClients: (agent: string) => ['paired-clients', agent] as const,
  recipe: (source: { kind: string; id: string }) => ['recipe', source.kind, source.id] as const,
  audit: (agent: string, owner: string, failed: boolean, security: boolean) =>
    ['audit', agent, owner, failed, security] as const,
  limits: (agent: string) => ['limits', agent] as const,
  recents: ['recents'] as const, // live
  projects: ['projects'] as const, // live: those that are remembered
  settings: ['settings'] as const, // live
  log: ['log'] as const,
  secrets: ['secrets'] as const, // asked for again when one is changed here and when the window is looked at
  notifier: ['notifier'] as const,
  settingsFile: ['settings-file'] as const, // asked for again when a setting changes
  version: ['version'] as const, // live
  updates: ['updates'] as const, // asked for again once an hour and when the settings file changes here
  demo: ['demo'] as const,
  connection: ['connection'] as const, // live: Connection
  probe: (lostAt: number) => ['probe', lostAt] as const, // why the channel cannot be opened
  doctor: ['doctor'] as const,
  folders: ['folders'] as const, // asked for again while something is counted or deleted, and when it is changed here
  project: (folder: string, dir: string, file: string, environment: string) =>
    ['project', folder, dir, file, environment] as const,
  buildChoices: (project: readonly string[]) => ['build-choices', ...project] as const,
  files: (place: string, path: string) => ['files', place, path] as const,
  images: ['images'] as const, // asked for again when an operation on images has ended
  imageDisk: (agent: string) => ['images', 'disk', agent] as const,
  environments: ['environments'] as const,
  environmentFile: ['environments', 'file'] as const,
  presets: ['presets'] as const, // live
  services: ['services'] as const, // asked for again every few seconds while shown
  devices: ['devices'] as const, // live: DeviceBoard of each agent
  // live once fetched
  deviceHistory: (agent: string, device: string, span: string) => ['device-history', agent, device, span] as const,
  resources: ['resources'] as const, // asked for again every few seconds and when a session changes
  accounts: (query: unknown) => ['accounts', query] as const,
  serviceAccounts: (query: unknown) => ['service-accounts', query] as const,
  previews: ['preview'] as const,
  preview: (spec: string, owner: string, count: number) => ['preview', spec, owner, count] as const,
  directory: (agent: string, path: string) => ['directory', agent, path] as const,
  terminals: (id: string) => ['terminals', id] as const,
  apps: (id: string) => ['apps', id] as const,
  ssh: (id: string) => ['ssh', id] as const,
}
