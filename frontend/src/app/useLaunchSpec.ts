import { App } from 'antd'
import { useCallback } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import type { Spec } from '@/api/types.gen'

/**
 * Opens the launcher at its last step, filled in with a spec. The draft is all that carries it over, so nothing is
 * launched and Back undoes it.
 */
export function useLaunchSpec(): (spec: Spec) => Promise<void> {
  const navigate = useNavigate()
  return useCallback(
    async (spec) => {
      const [{ fromSpec }, { encodeDraft }, { rememberDraft }] = await Promise.all([
        import('@/features/launcher/draft'),
        import('@/features/launcher/draftUrl'),
        import('@/features/launcher/address'),
      ])
      const asked = fromSpec(spec)
      const draft = encodeDraft(asked)
      // What the address does not carry, such as values of variables, goes beside it.
      rememberDraft(draft, asked)
      await navigate({ pathname: '/launcher', search: new URLSearchParams({ draft, step: 'confirm' }).toString() })
    },
    [navigate],
  )
}

/** The same for a recipe that was read from a file, which is said. */
export function useLaunchFile(): (file: { name: string; spec: Spec }) => void {
  const { t } = useTranslation('recipes')
  const { message } = App.useApp()
  const launch = useLaunchSpec()
  return useCallback(
    ({ name, spec }) => void launch(spec).then(() => message.info(t('opened', { name }))),
    [launch, message, t],
  )
}
