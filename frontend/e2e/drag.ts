import type { Locator, Page } from 'playwright-core'

/** Drags files of the disk over an element as a file manager does, and lets them go where asked. */
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
  await event('dragOver')
  await seen()
  await event('drop')
  await wire.detach()
}
