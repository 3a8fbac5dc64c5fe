import { useTranslation } from 'react-i18next'
import { formatLength } from '@/lib/time'

const names = ['partition', 'account', 'qos', 'constraint', 'reservation', 'gpuType'] as const

/** What a session asks of Slurm. */
type Asked = { [name in (typeof names)[number]]?: string } & { time?: string; options?: readonly string[] }

/** What is asked of Slurm, in one line. */
export function SlurmWords({ slurm }: { slurm: Asked }) {
  const { t } = useTranslation('launcher')
  const words = names.map((name) => (slurm[name] ? `${t(`slurm.${name}`)} ${slurm[name]}` : ''))
  if (slurm.time) words.push(`${t('slurm.time')} ${formatLength(slurm.time)}`)
  return <>{[...words, ...(slurm.options ?? [])].filter(Boolean).join(' · ')}</>
}
