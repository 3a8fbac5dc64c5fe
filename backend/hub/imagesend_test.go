package hub_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// describing is an agent that describes an image as it likes.
type describing struct {
	session.ImageTransfers
	parts session.ImageParts
}

func (d describing) DescribeImage(context.Context, string) (session.ImageParts, error) {
	return d.parts, nil
}

// receiving is an agent that notes what it is to receive, and takes nothing.
type receiving struct {
	session.ImageTransfers
	expected chan session.ImageParts
}

func (r receiving) ExpectImage(_ context.Context, parts session.ImageParts) (session.ImageArrival, error) {
	r.expected <- parts
	return session.ImageArrival{}, errors.New("enough")
}

// TestAnImageBringsOnlyTheNameThatWasAskedFor has an agent add names to an image,
// with which it would replace images of the machine that receives it.
func TestAnImageBringsOnlyTheNameThatWasAskedFor(t *testing.T) {
	const (
		train, latest = "lab/train:1", "docker.io/library/python:latest"

		id    = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
		other = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	)
	for name, c := range map[string]struct {
		asked string
		told  []string
		want  []string
		fails bool
	}{
		"a name":                  {asked: train, told: []string{train, "python:3.12"}, want: []string{train}},
		"a name, written in full": {asked: "python", told: []string{latest, "ubuntu"}, want: []string{latest}},
		"another name only":       {asked: "lab/train:1", told: []string{"python:3.12"}},
		"another tag":             {asked: "lab/train:1", told: []string{"lab/train:2", "lab/train"}},
		"another registry":        {asked: "lab/train:1", told: []string{"evil.example/lab/train:1"}},
		"a name that is none": {asked: "lab/train:1", told: []string{"lab/train:1\n", "lab/train:1 python:3.12",
			""}},
		"the name with a digest":   {asked: "lab/train:1", told: []string{"lab/train:1@" + id}},
		"many times the same":      {asked: "a:1", told: slices.Repeat([]string{"a:1"}, 1000), want: []string{"a:1"}},
		"an id":                    {asked: id, told: []string{"python:3.12"}},
		"a short id":               {asked: id[:20], told: []string{"python:3.12"}},
		"an id, and another comes": {asked: other, told: []string{"python:3.12"}, fails: true},
		"a pinned one": {asked: train + "@" + id, told: []string{train, "python:3.12"},
			want: []string{train}},
		"a pinned one, another came": {asked: "python:3.12@" + other, told: []string{"python:3.12"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, "local", "lab")
				w.run(t)
				expected := make(chan session.ImageParts, 1)
				w.agents[1].ImageTransfers = describing{parts: session.ImageParts{ID: id, Refs: c.told}}
				w.agents[0].ImageTransfers = receiving{expected: expected}
				begun, err := w.SendImage(hub.ImageSending{Image: c.asked, From: "lab", To: "local"})
				if err != nil {
					t.Fatal(err)
				}
				if o := w.operation(t, begun.ID, ended); o.State != hub.OperationFailed {
					t.Fatalf("it ended as %+v", o)
				} else if c.fails {
					if session.CodeOf(o.Error) != "image_update_invalid" || len(expected) != 0 {
						t.Errorf("it failed as %v", o.Error)
					}
					return
				}
				if got := <-expected; !slices.Equal(got.Refs, c.want) {
					t.Errorf("the image comes as %.50q, not %q", got.Refs, c.want)
				}
			})
		})
	}
}

// offAndOn is an agent whose first answers about images do not arrive.
type offAndOn struct {
	session.ImageTransfers
	lost int // answers
}

func (o *offAndOn) cut() error {
	if o.lost--; o.lost < 0 {
		return nil
	}
	return session.NewError(session.CodeAgentUnavailable, "The agent cannot be reached.", "Wait.")
}

func (o *offAndOn) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	if err := o.cut(); err != nil {
		return session.ImageParts{}, err
	}
	return o.ImageTransfers.DescribeImage(ctx, ref)
}

func (o *offAndOn) ExpectImage(ctx context.Context, parts session.ImageParts) (session.ImageArrival, error) {
	if err := o.cut(); err != nil {
		return session.ImageArrival{}, err
	}
	return o.ImageTransfers.ExpectImage(ctx, parts)
}

// TestASendThatBeginsDuringACutWaits: neither machine is reached when both are looked at.
func TestASendThatBeginsDuringACutWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local", "lab")
		w.run(t)
		const id = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
		expected := make(chan session.ImageParts, 1)
		w.agents[0].ImageTransfers = &offAndOn{describing{parts: session.ImageParts{ID: id}}, 5}
		w.agents[1].ImageTransfers = &offAndOn{receiving{expected: expected}, 5}
		begun, err := w.SendImage(hub.ImageSending{Image: id, From: "local", To: "lab"})
		if err != nil {
			t.Fatal(err)
		}
		w.operation(t, begun.ID, func(o hub.Operation) bool {
			return len(o.Steps) > 0 && strings.Contains(o.Steps[0].Detail, "continues")
		})
		if o := w.operation(t, begun.ID, ended); o.Steps[0].Detail != "enough" || len(expected) != 1 {
			t.Errorf("it ended as %+v, %+v", o, o.Error)
		}
	})
}
