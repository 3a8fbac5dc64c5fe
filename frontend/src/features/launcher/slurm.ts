import type { Machine, Slurm, SlurmPartition, SlurmSite } from '../../api/types.gen'
import type { Draft } from './draft'

/** What Slurm offers where a draft lands; undefined where that is no cluster, or not known yet. */
export function siteOf({ agent }: Pick<Draft, 'agent'>, machines: readonly Machine[]): SlurmSite | undefined {
  const chosen = machines.filter((m) => agent === '' || m.agent === agent)
  return chosen.length === 1 ? chosen[0]?.slurm : undefined
}

/** The partition that is asked for, or that Slurm would take; undefined where several or an unknown one are. */
export function partitionOf(site: SlurmSite, slurm: Slurm | null): SlurmPartition | undefined {
  const name = slurm?.partition
  return site.partitions.find((p) => (name ? p.name === name : p.default))
}

/** A machine with the CPUs and memory of one node of a partition, of which nobody here knows what is free. */
export function nodeOf(machine: Machine, { cpus, memory }: SlurmPartition): Machine {
  return { ...machine, cpus, memory, usedCpus: 0, usedMemory: 0 }
}

/** The devices of one node: their types, the most of them, and into how many parts each is divided; 0: into none. */
export function devicesOf(partition: SlurmPartition | undefined, type: string | undefined) {
  const all = partition?.gpus ?? []
  const fit = all.filter((g) => !type || g.type === type)
  const most = (values: number[]) => Math.max(0, ...values)
  return {
    types: all.flatMap((g) => g.type || []),
    count: most(fit.map((g) => g.count)),
    parts: most(fit.map((g) => (g.count > 0 ? Math.floor((g.shards ?? 0) / g.count) : 0))),
  }
}

/** One thing to choose, and why it cannot be: a key of the texts, and what fills it. */
export interface SlurmChoice {
  name: string
  why?: { key: 'down' | 'notAccount' | 'notQos' | 'notHere'; name: string }
}

const lets = (list: readonly string[] | undefined, name: string) => !list || list.length === 0 || list.includes(name)

export function partitionChoices(site: SlurmSite, slurm: Slurm | null): SlurmChoice[] {
  return site.partitions.map(({ name, up, accounts, qos }) => {
    if (!up) return { name, why: { key: 'down', name } }
    if (slurm?.account && !lets(accounts, slurm.account))
      return { name, why: { key: 'notAccount', name: slurm.account } }
    if (slurm?.qos && !lets(qos, slurm.qos)) return { name, why: { key: 'notQos', name: slurm.qos } }
    return { name }
  })
}

export function accountChoices(site: SlurmSite, slurm: Slurm | null): SlurmChoice[] {
  const partition = partitionOf(site, slurm)
  return [...new Set(site.accounts.map((a) => a.name))].map((name) => {
    const mine = site.accounts.filter((a) => a.name === name)
    const here = mine.some((a) => !a.partition || !partition || a.partition === partition.name)
    return partition && (!here || !lets(partition.accounts, name))
      ? { name, why: { key: 'notHere', name: partition.name } }
      : { name }
  })
}

export function qosChoices(site: SlurmSite, slurm: Slurm | null): SlurmChoice[] {
  const partition = partitionOf(site, slurm)
  const accounts = site.accounts.filter((a) => !slurm?.account || a.name === slurm.account)
  return site.qos.map(({ name }) => {
    if (partition && !lets(partition.qos, name)) return { name, why: { key: 'notHere', name: partition.name } }
    return accounts.length > 0 && !accounts.some((a) => lets(a.qos, name))
      ? { name, why: { key: 'notAccount', name: slurm?.account ?? accounts.map((a) => a.name).join(', ') } }
      : { name }
  })
}

/** What is asked of Slurm with empty entries left out; undefined: nothing. */
export function askedOf(slurm: Slurm): Slurm | undefined {
  const options = slurm.options?.map((option) => option.trim()).filter(Boolean)
  const { time, ...others } = slurm
  const asked = {
    ...others,
    ...(time && /\d/.test(time) ? { time } : {}),
    options: options?.length ? options : undefined,
  }
  const entries = Object.entries(asked).filter(([, value]) => value !== undefined && value !== '')
  return entries.length > 0 ? (Object.fromEntries(entries) as Slurm) : undefined
}
