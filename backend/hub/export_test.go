package hub

import "context"

// Mirror copies as CopyFiles does, and removes what is not at the source.
func (h *Hub) Mirror(ctx context.Context, from, to FileEnd) (Operation, error) {
	c := &fileCopy{transfers: h.transfers, source: from.Path, target: to.Path,
		copyRule: copyRule{replace: true, mirror: true}, slots: make(chan struct{}, copiesAtOnce)}
	var err error
	if c.from, _, err = h.endOf(ctx, from); err != nil {
		return Operation{}, err
	}
	if c.to, _, err = h.endOf(ctx, to); err != nil {
		return Operation{}, err
	}
	return h.operations.start(FileCopy, "mirror", func(ctx context.Context, work *Work) error {
		c.work = work
		return c.run(ctx)
	})
}
