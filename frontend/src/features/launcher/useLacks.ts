import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { totalOf } from './accelerator'
import type { Draft } from './draft'
import { useImages } from './useImages'
import { findVersion } from '@/api/environment'
import { imagesOn, imageState } from './images'
import { type ImageLack, type Lack, lacksOf } from './repair'
import type { Judgement } from './useJudgement'

/** What of the draft cannot be had here, as far as it is known. */
export function useLacks(draft: Draft, judgement: Judgement, pulled: ReadonlySet<string>): Lack[] {
  const { t } = useTranslation('launcher')
  const { environments, images } = useImages()
  const told = judgement.current ? judgement.preview.data : undefined
  return useMemo(() => {
    let image: ImageLack = 'none'
    if (told && !told.image && !draft.manual && environments.data && images.data && !pulled.has(draft.image)) {
      const here = imageState(draft.image, environments.data, imagesOn(images.data, draft.agent), draft.agent).installed
      const offered = findVersion(environments.data, draft.image) !== null
      const wrong = judgement.errors.some((issue) => issue.field === 'image')
      if (!here && !offered && !wrong) image = 'away'
    }
    const { mode } = draft.accelerator
    const amount = totalOf(draft.accelerator, 1)
    const accelerator =
      mode === 'shares' || mode === 'devices'
        ? t('repair.devices', { amount, kind: t(`accelerator.modes.${mode}`) })
        : amount
    return lacksOf(draft, judgement.issues, image, accelerator)
  }, [draft, judgement, told, environments.data, images.data, pulled, t])
}
