package agentrpc

import (
	"context"

	"slipway/backend/session"
	"slipway/tunnel"
)

// The arguments of the methods.
type (
	commitArgs struct {
		ID     session.ID            `json:"id"`
		Commit session.CommitRequest `json:"commit"`
	}
	workArgs struct {
		Work  string `json:"work"`
		After uint64 `json:"after,omitempty"`
	}
)

// The methods of [session.Images].
var (
	methodListImages = plain[none, []session.Image]{spec{"images", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, _ none) ([]session.Image, error) { return a.ListImages(ctx) }}
	methodPullImage = plain[session.PullRequest, session.ImageWork]{spec{"image.pull", "pull", tunnel.Control, again,
		short},
		func(ctx context.Context, a session.Agent, r session.PullRequest) (session.ImageWork, error) {
			return a.PullImage(ctx, r)
		}}
	methodCommitSession = plain[commitArgs, session.ImageWork]{spec{"image.commit", "commit", tunnel.Control, once,
		short},
		func(ctx context.Context, a session.Agent, r commitArgs) (session.ImageWork, error) {
			return a.CommitSession(ctx, r.ID, r.Commit)
		}}
	methodAwaitImageWork = plain[workArgs, session.ImageWork]{spec{"image.work", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r workArgs) (session.ImageWork, error) {
			return a.AwaitImageWork(ctx, r.Work, r.After)
		}}
	methodCancelImageWork = plain[workArgs, session.ImageWork]{spec{"image.cancel", "cancel", tunnel.Control, again,
		short},
		func(ctx context.Context, a session.Agent, r workArgs) (session.ImageWork, error) {
			return a.CancelImageWork(ctx, r.Work)
		}}
	methodRemoveImage = plain[refArgs, none]{spec{"image.remove", "remove", tunnel.Control, once, slow},
		func(ctx context.Context, a session.Agent, r refArgs) (none, error) {
			return none{}, a.RemoveImage(ctx, r.Ref)
		}}
	methodImageDisk = plain[none, session.ImageDisk]{spec{"image.disk", "read", tunnel.Control, read, slow},
		func(ctx context.Context, a session.Agent, _ none) (session.ImageDisk, error) { return a.ImageDisk(ctx) }}
)

func (c *Client) ListImages(ctx context.Context) ([]session.Image, error) {
	return methodListImages.call(ctx, c, none{})
}

func (c *Client) PullImage(ctx context.Context, req session.PullRequest) (session.ImageWork, error) {
	return methodPullImage.call(ctx, c, req)
}

func (c *Client) CommitSession(ctx context.Context, id session.ID,
	req session.CommitRequest) (session.ImageWork, error) {
	return methodCommitSession.call(ctx, c, commitArgs{id, req}, func(w *session.ImageWork) string {
		return another("session", w.Session == id)
	})
}

func (c *Client) AwaitImageWork(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
	return methodAwaitImageWork.call(ctx, c, workArgs{id, after}, ofWork(id))
}

func (c *Client) CancelImageWork(ctx context.Context, id string) (session.ImageWork, error) {
	return methodCancelImageWork.call(ctx, c, workArgs{Work: id}, ofWork(id))
}

func (c *Client) RemoveImage(ctx context.Context, ref string) error {
	_, err := methodRemoveImage.call(ctx, c, refArgs{ref})
	return err
}

func (c *Client) ImageDisk(ctx context.Context) (session.ImageDisk, error) {
	return methodImageDisk.call(ctx, c, none{})
}
