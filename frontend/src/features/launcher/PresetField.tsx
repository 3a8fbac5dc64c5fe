import { useMutation, useQueryClient } from '@tanstack/react-query'
import { App, Button, Input, Modal, Popover, Select, Tooltip } from 'antd'
import { BookmarkPlus, ListTodo, Trash2 } from 'lucide-react'
import { type KeyboardEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { usePresets } from '@/api/hooks'
import { keys } from '@/api/keys'
import { MAX_PRESET_NAME, MIN_MEMORY } from '@/api/rules.gen'
import type { Preset, PresetRequest } from '@/api/types.gen'
import { requestText } from '@/lib/accelerator'
import { formatBytes } from '@/lib/bytes'
import css from './accelerator.module.css'
import { MIB } from './amount'
import { applyPreset, type Draft, presetOf, toSpec } from './draft'
import { Field } from './Field'
import { useImages } from './useImages'
import { findVersion } from '@/api/environment'
import { minimumOf } from './images'
import launcher from './launcher.module.css'
import type { StepProps } from './StepProps'
import { useSeeded } from './useSeeded'

const CUSTOM = 'custom'
const MINIMUM = 'minimum'

/** Changes presets and reads them again; a refusal is shown. */
function useChange<T>(change: (value: T) => Promise<unknown>) {
  const client = useQueryClient()
  const { message } = App.useApp()
  return useMutation({
    mutationFn: change,
    onSuccess: () => client.invalidateQueries({ queryKey: keys.presets }),
    onError: (error) => {
      const problem = asProblem(error)
      void message.error([problem.message, problem.hint].filter(Boolean).join(' '))
    },
  })
}

/** The amounts of a preset in a few words. */
function useAmounts(): (preset: Preset) => string {
  const { t } = useTranslation('launcher')
  return (preset) => {
    const amounts = t('resources.amounts', {
      cpus: preset.resources.cpu || 1,
      memory: formatBytes(preset.resources.memory || 1024 * MIB),
    })
    return preset.accelerator ? `${amounts} · GPU ${requestText(preset.accelerator)}` : amounts
  }
}

function Save({ draft }: { draft: Draft }) {
  const { t } = useTranslation('launcher')
  const [open, setOpen] = useState(false)
  const [name, setName] = useState('')
  const create = useChange((preset: PresetRequest) => call('preset-create', { body: preset }))
  const save = () => {
    const { resources, accelerator } = toSpec(draft)
    create.mutate(
      { name: name.trim(), resources, ...(accelerator ? { accelerator } : {}) },
      { onSuccess: () => setOpen(false) },
    )
  }
  const form = (
    <div className={css.presetForm}>
      <Input
        autoFocus
        aria-label={t('presets.name')}
        placeholder={t('presets.name')}
        maxLength={MAX_PRESET_NAME}
        value={name}
        onChange={(e) => setName(e.target.value)}
        onPressEnter={() => name.trim() && save()}
      />
      <Button type="primary" disabled={name.trim() === ''} loading={create.isPending} onClick={save}>
        {t('presets.saveNow')}
      </Button>
    </div>
  )
  return (
    <Popover
      content={form}
      trigger={['click']}
      open={open}
      onOpenChange={setOpen}
      placement="bottomRight"
      arrow={false}
      destroyOnHidden
    >
      <Tooltip title={open ? '' : t('presets.save')}>
        <Button
          type="text"
          size="small"
          aria-label={t('presets.save')}
          icon={<BookmarkPlus size={14} />}
          onClick={() => setName('')}
        />
      </Tooltip>
    </Popover>
  )
}

function PresetRow({ preset, amounts }: { preset: Preset; amounts: string }) {
  const { t } = useTranslation('launcher')
  const { modal } = App.useApp()
  const [name, setName] = useState(preset.name)
  const rename = useChange((next: string) => call('preset-update', { path: { id: preset.id }, body: { name: next } }))
  const remove = useChange(() => call('preset-delete', { path: { id: preset.id } }))
  const keep = () => {
    const next = name.trim()
    if (next === '' || next === preset.name) setName(preset.name)
    else rename.mutate(next, { onError: () => setName(preset.name) })
  }
  // Leaving the field keeps what stands in it, so Escape puts the name back first.
  const leave = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || name === preset.name) return
    event.stopPropagation()
    setName(preset.name)
  }
  const ask = () =>
    modal.confirm({
      title: t('presets.deleteTitle', { name: preset.name }),
      okText: t('presets.delete'),
      okButtonProps: { danger: true },
      cancelText: t('picker.cancel'),
      onOk: () => remove.mutate(),
    })
  return (
    <li>
      <Input
        variant="borderless"
        aria-label={t('presets.rename', { name: preset.name })}
        maxLength={MAX_PRESET_NAME}
        value={name}
        onChange={(e) => setName(e.target.value)}
        onBlur={keep}
        onKeyDown={leave}
        onPressEnter={(e) => e.currentTarget.blur()}
      />
      <span className={css.amounts}>{amounts}</span>
      <Button
        type="text"
        size="small"
        aria-label={t('presets.deleteOne', { name: preset.name })}
        loading={remove.isPending}
        icon={<Trash2 size={14} />}
        onClick={ask}
      />
    </li>
  )
}

function Manage({ presets }: { presets: readonly Preset[] }) {
  const { t } = useTranslation('launcher')
  const amounts = useAmounts()
  const [open, setOpen] = useState(false)
  return (
    <>
      <Tooltip title={t('presets.manage')}>
        <Button
          type="text"
          size="small"
          aria-label={t('presets.manage')}
          icon={<ListTodo size={14} />}
          onClick={() => setOpen(true)}
        />
      </Tooltip>
      <Modal
        open={open}
        title={t('presets.title')}
        footer={null}
        width={560}
        onCancel={() => setOpen(false)}
        destroyOnHidden
      >
        <p className={css.quiet}>{t('presets.text')}</p>
        <ul className={css.presets}>
          {presets.map((preset) => (
            <PresetRow key={preset.id} preset={preset} amounts={amounts(preset)} />
          ))}
        </ul>
      </Modal>
    </>
  )
}

/** Named bundles of amounts: those built in and one's own, which are saved, renamed and deleted here. */
export function PresetField({ draft, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const saved = usePresets().data ?? []
  const { environments, images } = useImages()
  const floor = { cpu: 1, memory: MIN_MEMORY }
  const family = findVersion(environments.data ?? [], draft.image)?.family
  const said =
    family && (family.minCpu || family.minMemory)
      ? { cpu: family.minCpu || floor.cpu, memory: family.minMemory || floor.memory }
      : null
  const least = minimumOf(draft.image, images.data ?? [], floor) ?? said
  // What the image needs is offered like a preset; nobody can rename it.
  const minimum: Preset[] = least ? [{ id: MINIMUM, name: t('presets.minimum'), resources: least, builtin: true }] : []
  const presets = [...minimum, ...saved]
  const amounts = useAmounts()
  const seeded = useSeeded()
  const chosen = presetOf(draft, presets)
  const own = presets.filter((p) => !p.builtin)
  const options = presets.map((preset) => ({
    value: preset.id,
    label: (
      <span className={launcher.option}>
        <span className={launcher.optionName}>
          {preset.builtin ? seeded('preset', preset.id, preset.name) : preset.name}
        </span>
        <span className={launcher.size}>{amounts(preset)}</span>
      </span>
    ),
  }))
  const tools = (
    <span className={css.presetTools}>
      {chosen ? null : <Save draft={draft} />}
      {own.length > 0 ? <Manage presets={own} /> : null}
    </span>
  )
  return (
    <Field label={t('preset.label')} hint={chosen ? undefined : t('preset.customHint')} aside={tools}>
      {(control) => (
        <Select
          id={control.id}
          value={chosen?.id ?? CUSTOM}
          options={chosen ? options : [{ value: CUSTOM, label: t('preset.custom') }, ...options]}
          onChange={(id) => {
            const preset = presets.find((p) => p.id === id)
            if (preset) change((old) => applyPreset(old, preset))
          }}
        />
      )}
    </Field>
  )
}
