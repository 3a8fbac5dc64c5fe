import { useMutation, useQueryClient } from '@tanstack/react-query'
import { App, Button, Select } from 'antd'
import { CloudDownload, FolderOpen, FolderPlus, X } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem, call } from '@/api/client'
import { normalReference } from '@/api/environment'
import { useFolders } from '@/api/folders'
import { useAgents, useMachines, useSessionBook } from '@/api/hooks'
import { keys } from '@/api/keys'
import { isLive } from '@/lib/status'
import { awayOf, placeOf } from './away'
import { CopyFolder } from './CopyFolder'
import { DirectoryPicker } from './DirectoryPicker'
import type { Draft } from './draft'
import { useImages } from './useImages'
import { DeviceChoices } from './RepairDevices'
import { type Lack, repairAfter, repairMount, setting } from './repair'
import type { Judgement } from './useJudgement'
import { useMachinesFor } from './useMachinesFor'
import type { RepairsUse } from './useRepairs'

export interface ChoicesProps {
  draft: Draft
  lack: Lack
  repairs: RepairsUse
  judgement: Judgement
}

/** What can be taken in the place of what is not there. */
export function RepairChoices(props: ChoicesProps) {
  switch (props.lack.kind) {
    case 'agent':
      return <AgentChoices {...props} />
    case 'group':
      return <GroupChoices {...props} />
    case 'image':
      return <ImageChoices {...props} />
    case 'accelerator':
      return <DeviceChoices {...props} />
    case 'mount':
      return <MountChoices {...props} />
    case 'part':
      return <PartChoices {...props} />
    case 'after':
      return <AfterChoices {...props} />
    case 'notBefore':
      return <SoonChoice {...props} />
  }
}

function LeaveOut({ onClick }: { onClick: () => void }) {
  const { t } = useTranslation('launcher')
  return (
    <Button size="small" icon={<X size={13} />} onClick={onClick}>
      {t('repair.leaveOut')}
    </Button>
  )
}

function Instead({
  label,
  options,
  onChoose,
}: {
  label: string
  options: readonly { value: string; label: string }[]
  onChoose: (value: string, label: string) => void
}) {
  return (
    <Select
      size="small"
      style={{ minWidth: 170 }}
      popupMatchSelectWidth={false}
      showSearch={{ optionFilterProp: 'label' }}
      aria-label={label}
      placeholder={label}
      value={null}
      options={[...options]}
      onSelect={(value: string | null) =>
        onChoose(value ?? '', options.find((option) => option.value === value)?.label ?? '')
      }
    />
  )
}

function AgentChoices({ draft, lack, repairs }: ChoicesProps) {
  const { t } = useTranslation('launcher')
  const machines = useMachinesFor(draft.group).machines ?? []
  const options = [
    { value: '', label: t('agent.auto') },
    ...machines.filter((m) => m.online).map((m) => ({ value: m.agent, label: m.agent })),
  ]
  return (
    <Instead
      label={t('repair.anotherAgent')}
      options={options}
      onChoose={(agent, label) => repairs.repair(setting(lack, draft, label, { agent }))}
    />
  )
}

function GroupChoices({ draft, lack, repairs }: ChoicesProps) {
  const { t } = useTranslation('launcher')
  const groups = [...new Set((useAgents().data ?? []).map((a) => a.group))].filter(Boolean)
  const options = [
    { value: '', label: t('repair.anyGroup') },
    ...groups.map((group) => ({ value: group, label: group })),
  ]
  return (
    <Instead
      label={t('repair.anotherGroup')}
      options={options}
      onChoose={(group, label) => repairs.repair(setting(lack, draft, label, { group }))}
    />
  )
}

function ImageChoices({ draft, lack, repairs }: ChoicesProps) {
  const { t } = useTranslation('launcher')
  const families = useImages().environments.data ?? []
  const unpinned = normalReference(draft.image.split('@')[0] ?? '')
  const versions = families.flatMap((family) =>
    family.versions.map((version) => ({
      value: version.image,
      label: `${family.title} · ${version.title}${version.installed ? ` · ${t('image.installed')}` : ''}`,
    })),
  )
  // The same name, as it is here now, comes first.
  const options = versions.toSorted(
    (a, b) => Number(normalReference(b.value) === unpinned) - Number(normalReference(a.value) === unpinned),
  )
  return (
    <>
      {lack.issue.severity === 'warning' ? (
        <Button size="small" icon={<CloudDownload size={13} />} onClick={() => repairs.pull(lack)}>
          {t('repair.pull')}
        </Button>
      ) : null}
      <Instead
        label={t('repair.anotherImage')}
        options={options}
        onChoose={(image) => repairs.repair(setting(lack, draft, image, { image, manual: false }))}
      />
    </>
  )
}

/** The agent on whose machine a launch would look for folders. */
function useLanding(draft: Draft, judgement: Judgement): { agent: string; several: boolean } {
  const several = (useMachines().data ?? []).length > 1
  return { agent: placeOf(draft) || (judgement.preview.data?.agent ?? ''), several }
}

function MountChoices({ draft, lack, repairs, judgement }: ChoicesProps) {
  const { t } = useTranslation('launcher')
  const { message } = App.useApp()
  const client = useQueryClient()
  const { agent, several } = useLanding(draft, judgement)
  const known = useFolders().data ?? []
  const [picking, setPicking] = useState(false)
  const row = draft.mounts[lack.index]
  const folders = known.filter(
    (f) => f.state === 'ready' && !f.auto && f.agent === agent && !draft.mounts.some((m) => m.folder === f.name),
  )
  const create = useMutation({
    mutationFn: (name: string) => call('folder-create', { body: { name, agent } }),
    onSuccess: async (made) => {
      // A folder is one machine's: it was made there, so the session goes there.
      const there = several && draft.agent === '' ? { agent: made.agent, group: '' } : {}
      repairs.repair({
        ...setting(lack, draft, t('repair.created', { name: made.name, agent: made.agent }), there),
        final: true,
      })
      await Promise.all([
        client.invalidateQueries({ queryKey: keys.folders }),
        client.invalidateQueries({ queryKey: keys.previews }),
      ])
    },
    onError: (error) => void message.error(asProblem(error).message),
  })
  if (!row) return null
  const { folder } = row
  const away = awayOf(row, known, agent)
  return (
    <>
      {away ? (
        <CopyFolder
          away={away}
          onUse={(name) => repairs.repair(repairMount(lack, draft, { folder: name, path: row.path ?? '' }))}
          onMove={(to) => repairs.repair(setting(lack, draft, to, { agent: to, group: '' }))}
        />
      ) : null}
      {away || folder === undefined || agent === '' ? null : (
        <Button
          size="small"
          icon={<FolderPlus size={13} />}
          loading={create.isPending}
          onClick={() => create.mutate(folder)}
        >
          {t(several ? 'repair.createOn' : 'repair.create', { agent })}
        </Button>
      )}
      {folders.length > 0 ? (
        <Instead
          label={t('repair.anotherFolder')}
          options={folders.map((f) => ({ value: f.name, label: f.name }))}
          onChoose={(name) => repairs.repair(repairMount(lack, draft, { folder: name }))}
        />
      ) : null}
      {agent === '' ? null : (
        <Button size="small" icon={<FolderOpen size={13} />} onClick={() => setPicking(true)}>
          {t('storage.add')}
        </Button>
      )}
      <LeaveOut onClick={() => repairs.repair(repairMount(lack, draft, null))} />
      {picking ? (
        <DirectoryPicker
          agent={agent}
          named={several}
          start=""
          onPick={(source) => {
            setPicking(false)
            repairs.repair(repairMount(lack, draft, { source }))
          }}
          onClose={() => setPicking(false)}
        />
      ) : null}
    </>
  )
}

function PartChoices({ draft, lack, repairs }: ChoicesProps) {
  const { t } = useTranslation('launcher')
  const folder = draft.mounts[lack.index]?.folder ?? ''
  return (
    <>
      <Button size="small" onClick={() => repairs.repair(repairMount(lack, draft, { folder }))}>
        {t('repair.whole')}
      </Button>
      <LeaveOut onClick={() => repairs.repair(repairMount(lack, draft, null))} />
    </>
  )
}

function AfterChoices({ draft, lack, repairs }: ChoicesProps) {
  const { t } = useTranslation('launcher')
  const batch = Object.values(useSessionBook().data ?? {}).filter(
    (s) => isLive(s.status) && s.type === 'batch' && !draft.after.includes(s.id) && !draft.after.includes(s.name),
  )
  return (
    <>
      {batch.length > 0 ? (
        <Instead
          label={t('repair.anotherSession')}
          options={batch.map((s) => ({ value: s.id, label: s.name }))}
          onChoose={(id, name) => repairs.repair(repairAfter(lack, draft, { id, name }))}
        />
      ) : null}
      <Button size="small" icon={<X size={13} />} onClick={() => repairs.repair(repairAfter(lack, draft, null))}>
        {t('repair.noWait')}
      </Button>
    </>
  )
}

function SoonChoice({ draft, lack, repairs }: ChoicesProps) {
  const { t } = useTranslation('launcher')
  return (
    <Button size="small" onClick={() => repairs.repair(setting(lack, draft, t('repair.soon'), { startAt: null }))}>
      {t('repair.soon')}
    </Button>
  )
}
