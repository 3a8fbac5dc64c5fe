import {
  BrainCircuit,
  ChartColumn,
  CircuitBoard,
  FolderOpen,
  Layers,
  Rocket,
  Server,
  Settings2,
  SquareStack,
  type LucideIcon,
} from 'lucide-react'

/** A section of the rail; its place is also its key, Ctrl-1 and so on. */
export interface Section {
  name: 'sessions' | 'services' | 'launcher' | 'folders' | 'images' | 'gpus' | 'usage' | 'agents' | 'settings'
  to: string
  icon: LucideIcon
  /** The path of a page that belongs to it, too. */
  also?: string
}

export const sections: readonly Section[] = [
  { name: 'sessions', to: '/sessions', icon: SquareStack },
  { name: 'services', to: '/services', icon: BrainCircuit, also: '/playground' },
  { name: 'launcher', to: '/launcher', icon: Rocket },
  { name: 'folders', to: '/folders', icon: FolderOpen },
  { name: 'images', to: '/images', icon: Layers },
  { name: 'gpus', to: '/gpus', icon: CircuitBoard },
  { name: 'usage', to: '/usage', icon: ChartColumn },
  { name: 'agents', to: '/agents', icon: Server },
  { name: 'settings', to: '/settings', icon: Settings2 },
]
