import type { Locator, Page } from 'playwright-core'
import { eventually } from './program'

/**
 * Drags files of the disk over an element and lets them go where asked. As a file manager does, it tells that they are
 * there for as long as they are.
 */
export async function drag(page: Page, onto: Locator, files: string[], seen: () => Promise<unknown>): Promise<void> {
  const box = await onto.boundingBox()
  if (!box) throw new Error('there is nothing to drop onto')
  const wire = await page.context().newCDPSession(page)
  const event = (type: 'dragEnter' | 'dragOver' | 'drop') =>
    wire.send('Input.dispatchDragEvent', {
      type,
      x: box.x + box.width / 2,
      y: box.y + box.height / 2,
      data: { items: [], files, dragOperationsMask: 1 },
    })
  await event('dragEnter')
  let enough = false
  const hover = async () => {
    await event('dragOver')
    return enough
  }
  await Promise.all([seen().finally(() => (enough = true)), eventually('the drag is seen', hover)])
  await event('drop')
  await wire.detach()
}
