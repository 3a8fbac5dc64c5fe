import { isCalm } from '@/lib/useMedia'

let context: AudioContext | undefined

/** A short, quiet tone. A browser that allows no sound before a first click stays silent. */
export function ring(): void {
  try {
    context ??= new AudioContext()
    const at = context.currentTime
    const tone = context.createOscillator()
    const volume = context.createGain()
    tone.frequency.value = 740
    volume.gain.setValueAtTime(0.08, at)
    volume.gain.exponentialRampToValueAtTime(0.0001, at + 0.16)
    tone.connect(volume).connect(context.destination)
    tone.start(at)
    tone.stop(at + 0.17)
  } catch {
    // A computer without sound.
  }
}

/** Lets an element flash once, or shows a still frame around it to somebody who wants nothing to move. */
export function flash(element: HTMLElement): void {
  if (isCalm())
    element.animate(
      { outline: Array(2).fill('2px solid var(--ant-color-warning)'), outlineOffset: Array(2).fill('-2px') },
      { duration: 600 },
    )
  else element.animate([{ opacity: 1 }, { opacity: 0.45 }, { opacity: 1 }], { duration: 140, easing: 'ease-out' })
}
