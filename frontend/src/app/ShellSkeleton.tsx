/** The same still picture as in index.html, until the first route is there. */
export function ShellSkeleton() {
  return (
    <div className="shell" aria-hidden>
      <i />
      <i />
      <div>
        <b />
        <b style={{ width: '60%' }} />
        <b style={{ width: '45%' }} />
      </div>
    </div>
  )
}
