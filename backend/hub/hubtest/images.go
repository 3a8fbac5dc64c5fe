package hubtest

import (
	"context"
	"io"

	"slipway/backend/session"
)

// Images is the transfer side of an agent in memory: the functions of another
// [session.ImageTransfers], such as those of a real agent.
type Images = session.ImageTransfers

func (a *Agent) transfers() (Images, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, a.unavailable()
	}
	if a.Images == nil {
		return nil, &session.Error{Code: "engine_image_not-found", Message: "This agent has no images to move.",
			Hint: "Give it some."}
	}
	return a.Images, nil
}

func (a *Agent) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	images, err := a.transfers()
	if err != nil {
		return session.ImageParts{}, err
	}
	return images.DescribeImage(ctx, ref)
}

func (a *Agent) SendImage(ctx context.Context, wish session.ImageWish) (io.ReadCloser, error) {
	images, err := a.transfers()
	if err != nil {
		return nil, err
	}
	return images.SendImage(ctx, wish)
}

func (a *Agent) ExpectImage(ctx context.Context, parts session.ImageParts) (session.ImageArrival, error) {
	images, err := a.transfers()
	if err != nil {
		return session.ImageArrival{}, err
	}
	return images.ExpectImage(ctx, parts)
}

func (a *Agent) ReceiveImage(ctx context.Context, id string) (io.ReadWriteCloser, error) {
	images, err := a.transfers()
	if err != nil {
		return nil, err
	}
	return images.ReceiveImage(ctx, id)
}

func (a *Agent) InstallImage(ctx context.Context, id string) (session.Image, error) {
	images, err := a.transfers()
	if err != nil {
		return session.Image{}, err
	}
	return images.InstallImage(ctx, id)
}

func (a *Agent) ForgetImage(ctx context.Context, id string) error {
	images, err := a.transfers()
	if err != nil {
		return err
	}
	return images.ForgetImage(ctx, id)
}
