/** A paragraph, or lines between two fences. */
export interface Block {
  code: boolean
  text: string
}

const fence = /^ {0,3}(`{3,}|~{3,})[^`]*$/

/** Splits an answer into paragraphs and blocks of code, of which the last may be unfinished. */
export function blocksOf(text: string): Block[] {
  const blocks: Block[] = []
  let lines: string[] = []
  let open = ''
  const end = (code: boolean) => {
    if (code || lines.some((line) => line.trim())) blocks.push({ code, text: lines.join('\n') })
    lines = []
  }
  for (const line of text.split('\n')) {
    const mark = fence.exec(line)?.[1] ?? ''
    if (open ? mark.startsWith(open) && line.trim() === mark : mark) {
      end(open !== '')
      open = open ? '' : mark
    } else if (!open && line.trim() === '') end(false)
    else lines.push(line)
  }
  end(open !== '')
  return blocks
}
