import { render, screen } from '@testing-library/react'
import { expect, it } from 'vitest'
import { Markdown } from './Markdown'

it('shows the marks as what they mean, and never takes anything for HTML', () => {
  const { container } = render(
    <Markdown
      text={
        '# Who leaves?\n\n*a.csv* and `b` <img src=x onerror=alert(1)>\n\n[here](https://example.org) ' +
        '[there](javascript:alert(1))'
      }
    />,
  )
  expect(screen.getByRole('heading', { name: 'Who leaves?' })).toBeInTheDocument()
  expect([container.querySelector('em')?.textContent, container.querySelector('code')?.textContent]).toEqual([
    'a.csv',
    'b',
  ])
  expect(container.querySelector('img')).toBeNull()
  expect(screen.getAllByRole('link').map((link) => link.textContent)).toEqual(['here'])
})
