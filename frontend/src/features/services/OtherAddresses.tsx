import { Button } from 'antd'
import { Download } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Service, ServiceAddress } from '@/api/types.gen'
import { saveText } from '@/lib/save'
import { Copied } from './Copied'
import css from './services.module.css'

/** Where clients reach the machine of a service other than through this computer: rows of a list of facts. */
export function OtherAddresses({ service }: { service: Service }) {
  const { t } = useTranslation('services')
  return service.addresses
    .filter((one) => one.from === 'network' || one.url !== service.address)
    .map((one) => (
      <div key={one.from} className={css.fact}>
        <dt>{t(`endpoint.from.${fromOf(one)}`, { machine: service.agent })}</dt>
        <dd>
          {one.url ? <Open service={service} at={one} url={one.url} /> : <span className={css.bad}>{one.fault}</span>}
        </dd>
      </div>
    ))
}

const fromOf = (at: ServiceAddress) => (at.from === 'network' ? 'network' : 'machine')

function Open({ service, at, url }: { service: Service; at: ServiceAddress; url: string }) {
  const { t } = useTranslation('services')
  const certificate = at.certificate
  return (
    <>
      <Copied text={url} label={t(`endpoint.copy.${fromOf(at)}`, { name: service.name, machine: service.agent })} />
      {certificate ? (
        <Button
          size="small"
          type="link"
          icon={<Download size={13} aria-hidden />}
          title={t('endpoint.certificateHint')}
          onClick={() => saveText(`${service.agent}.pem`, 'application/x-pem-file', certificate)}
        >
          {t('endpoint.certificate')}
        </Button>
      ) : null}
    </>
  )
}
