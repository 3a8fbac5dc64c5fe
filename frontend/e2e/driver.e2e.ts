import { afterAll, describe, it } from 'vitest'
import { Browser, picture } from './browser'
import { Driver } from './driver'
import { stage } from './hooks'
import { askFor, choose } from './launcherPage'
import { Program } from './program'

// What is made up here are the devices alone: the program, its reader of NVIDIA's library and Docker are real.
const GIB = 1024 ** 3
const driver = new Driver()
const program = new Program('docker', driver.env)
const browser = new Browser()

afterAll(() => driver.close())
stage(program, browser)

describe('devices of NVIDIA', () => {
  it('that are cut up are asked for by profile, on an instance that the hardware keeps apart', async () => {
    const page = await browser.page(program, '/launcher?step=environment')
    await askFor(page, 'MIG')
    const map = page.getByRole('list', { name: 'Placement preview' })
    await choose(page, 'Profile and number', '3g.40gb · 40 GiB · 1 on this machine')
    await map
      .locator('[data-landing=true]')
      .filter({ hasText: 'GPU 1' })
      .getByText(/placed here/)
      .waitFor()
    await page.locator('[data-level=hardware]').waitFor()
    await picture(page, 'launcher-mig')
    await page.locator('button[data-step="confirm"]').click()
    await page.locator('pre', { hasText: '--gpu mig:3g.40gb' }).waitFor()
    await page.locator('button[data-step="environment"]').click()
    await page.getByRole('spinbutton', { name: 'Number of instances' }).fill('2')
    await page.locator('[data-outlook="bad"]').waitFor()
  })

  it('show a foreign process that takes memory at once, as the reason to wait, until it has exited', async () => {
    const page = await browser.page(program, '/gpus')
    const card = page.getByRole('article', { name: /^GPU 0,/ })
    await card.getByText('1 of 1').waitFor()
    driver.hold({ gpu: 0, pid: process.pid, memory: 60 * GIB })
    await card.getByText(`pid ${process.pid}`).waitFor()
    await card.getByText('60 GiB of 80 GiB').waitFor()
    await picture(page, 'gpus-foreign')
    await page.goto(`${program.url}/launcher?step=environment`)
    await askFor(page, 'Whole GPUs')
    const outlook = page.locator('[data-outlook="slow"]')
    await outlook.getByText('Who has what').click()
    await outlook.getByText(`pid ${process.pid}`).waitFor()
    driver.hold()
    await page.locator('[data-outlook="good"]').waitFor()
    await page.locator('[data-level=whole]').waitFor()
  })
})
