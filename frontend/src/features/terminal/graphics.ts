let known: boolean | undefined

/**
 * Whether drawing with WebGL is worth it: there is a graphics card and the
 * browser says which. Software drawing is slower than the DOM, and WebKit on
 * Linux hides what it draws with behind another maker's name.
 */
export function hasGraphics(): boolean {
  known ??= probe(document.createElement('canvas'))
  return known
}

function probe(canvas: HTMLCanvasElement): boolean {
  const gl = canvas.getContext('webgl2', { failIfMajorPerformanceCaveat: true })
  if (!gl) return false
  const info = gl.getExtension('WEBGL_debug_renderer_info')
  const renderer = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER))
  gl.getExtension('WEBGL_lose_context')?.loseContext()
  const masked = /Apple GPU/.test(renderer) && !/Mac/.test(navigator.userAgent)
  return !masked && !/swiftshader|llvmpipe|softpipe|software|basic render|^webkit webgl$/i.test(renderer)
}
