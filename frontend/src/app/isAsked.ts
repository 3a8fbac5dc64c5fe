/** Whether a question lies over the page: keys and drops must not change what is behind it. */
export const isAsked = (but = '') =>
  [...document.querySelectorAll('.ant-modal-wrap')].some(
    (wrap) => wrap.getClientRects().length > 0 && !(but && wrap.querySelector(but)),
  )
