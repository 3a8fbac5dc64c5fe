// Runs before anything else. Some web views say that their language is "C",
// which every number formatter refuses; and the theme must be known before the
// first paint, or a dark window flashes white.
;(function () {
  try {
    new Intl.NumberFormat(navigator.language)
  } catch (e) {
    Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true })
    Object.defineProperty(navigator, 'languages', { value: ['en-US'], configurable: true })
  }
  var theme = null
  try {
    theme = JSON.parse(localStorage.getItem('slipway.theme'))
  } catch (e) {
    theme = null
  }
  var dark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset.theme = dark ? 'dark' : 'light'

  // When the still picture of the shell was on the screen, for whoever measures it.
  requestAnimationFrame(function () {
    requestAnimationFrame(function () {
      performance.mark('slipway:picture')
    })
  })

  // A part of the page that does not arrive (an upgrade renamed it, or the
  // network changed under the request, as it does when containers start) comes
  // with a reload; three in half a minute mean that something else is wrong.
  var reloads = []
  function again() {
    var now = Date.now()
    try {
      reloads = JSON.parse(sessionStorage.getItem('slipway.reloads')) || []
    } catch (e) {
      reloads = []
    }
    reloads = reloads.filter(function (at) {
      return now - at < 30000
    })
    if (reloads.length >= 3) return false
    sessionStorage.setItem('slipway.reloads', JSON.stringify(reloads.concat(now)))
    setTimeout(function () {
      location.reload()
    }, 400)
    return true
  }
  addEventListener('vite:preloadError', function (event) {
    if (again()) event.preventDefault()
  })
  addEventListener(
    'error',
    function (event) {
      var from = event.target
      if (from && (from.tagName === 'SCRIPT' || (from.tagName === 'LINK' && from.rel === 'stylesheet'))) again()
    },
    true,
  )
})()
