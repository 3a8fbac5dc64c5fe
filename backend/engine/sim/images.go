package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Image is one image that a simulated machine or registry has.
type Image struct {
	Ref       string
	Layers    []gpu.Bytes // as they are downloaded
	Size      gpu.Bytes   // on disk; 0: a little over twice the download
	Installed bool        // there from the beginning
}

// Catalogue is what the simulated registry has. Some of it is on the machine
// from the beginning.
func Catalogue() []Image {
	image := func(ref string, mib gpu.Bytes, installed bool) Image {
		return Image{Ref: ref, Layers: layers(mib * gpu.MiB), Installed: installed}
	}
	return []Image{
		image("python:3.13", 390, false), image("python:3.12", 390, true), image("python:3.11", 390, false),
		image("python:3.12-slim", 45, true),
		image("quay.io/jupyter/scipy-notebook:latest", 1400, false), image("quay.io/jupyter/minimal-notebook:latest",
			600, true),
		image("quay.io/jupyter/datascience-notebook:latest", 1900, false),
		image("quay.io/jupyter/pyspark-notebook:latest", 1800, false),
		image("quay.io/jupyter/pytorch-notebook:latest", 2000, false),
		image("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", 3100, true),
		image("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel", 6300, false),
		image("tensorflow/tensorflow:2.18.0", 700, false), image("tensorflow/tensorflow:2.18.0-gpu", 3600, false),
		image("tensorflow/tensorflow:2.18.0-jupyter", 800, false),
		image("rocker/tidyverse:4.4.2", 900, false), image("r-base:4.4.2", 340, false), image("julia:1.11", 300, false),
		image("julia:1.10", 290, false),
		image("nvidia/cuda:12.6.2-cudnn-devel-ubuntu24.04", 5200, false),
		image("nvidia/cuda:12.6.2-cudnn-runtime-ubuntu24.04", 2200, false),
		image("ubuntu:24.04", 30, true), image("ubuntu:22.04", 30, false), image("debian:12", 50, false),
		image("debian:12-slim", 30, false),
	}
}

// layers splits a download the way images are: a base, a few large layers, and
// small ones.
func layers(total gpu.Bytes) []gpu.Bytes {
	shares := []gpu.Bytes{8, 20, 5, 46, 2, 14, 4}
	if total < 64*gpu.MiB {
		shares = []gpu.Bytes{70, 25, 4}
	}
	var split []gpu.Bytes
	left := total
	for _, share := range shares {
		part := total * share / 100
		split = append(split, part)
		left -= part
	}
	return append(split, left)
}

func (i Image) download() gpu.Bytes {
	var sum gpu.Bytes
	for _, layer := range i.Layers {
		sum += layer
	}
	return sum
}

func (i Image) describe() session.Image {
	size := i.Size
	if size == 0 {
		size = i.download() * 22 / 10
	}
	return session.Image{
		ID: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(i.Ref))), Refs: []string{i.Ref}, Size: size,
		CreatedAt: time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC), Arch: arch(),
	}
}

// Pinned is an image of the catalogue by its digest.
func Pinned(ref string) string { return session.PinImage(ref, Image{Ref: ref}.describe()) }

func arch() string {
	if runtime.GOARCH == "arm64" {
		return "arm64"
	}
	return "amd64"
}

// fullRef adds the tag that a reference without one means, and takes away the
// registry that one without a host means.
func fullRef(ref string) string {
	ref = strings.TrimPrefix(strings.TrimPrefix(ref, "docker.io/"), "library/")
	if last := ref[strings.LastIndex(ref, "/")+1:]; strings.ContainsAny(last, ":@") {
		return ref
	}
	return ref + ":latest"
}

// published returns the image that the registry has under ref.
func (s *Sim) published(ref string) (Image, bool) {
	name, digest, _ := strings.Cut(ref, "@")
	for _, image := range s.config.Catalogue {
		if fullRef(image.Ref) == fullRef(name) && (digest == "" || image.describe().ID == digest) {
			return image, true
		}
	}
	return Image{}, false
}

// image returns the image that the machine has under ref, or under an id.
func (s *Sim) image(ref string) (session.Image, bool) {
	name, digest, _ := strings.Cut(ref, "@")
	for _, image := range s.installed() {
		named := func(other string) bool { return fullRef(other) == fullRef(name) }
		if image.ID == ref || digest != "" && image.ID == digest || digest == "" &&
			slices.ContainsFunc(image.Refs, named) {
			return image, true
		}
	}
	return session.Image{}, false
}

func (s *Sim) installed() []session.Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	images := []session.Image{}
	for _, image := range s.config.Catalogue {
		if image.Installed && !s.evicted[image.Ref] || s.pulled[image.Ref] {
			images = append(images, image.describe())
		}
	}
	for _, brought := range s.imported() {
		at := slices.IndexFunc(images, func(i session.Image) bool { return i.ID == brought.ID })
		if at < 0 {
			images = append(images, brought)
			continue
		}
		images[at].Refs = append(images[at].Refs, brought.Refs...) // a further name of what is there
	}
	images = append(images, s.committed...)
	sort.Slice(images, func(i, j int) bool { return images[i].Refs[0] < images[j].Refs[0] })
	return images
}

func (s *Sim) Images(ctx context.Context) ([]session.Image, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	return s.installed(), nil
}

func (s *Sim) Image(ctx context.Context, ref string) (session.Image, error) {
	if err := s.check(ctx); err != nil {
		return session.Image{}, err
	}
	image, ok := s.image(ref)
	if !ok {
		return session.Image{}, &session.Error{Code: "engine_image_not-found",
			Message: fmt.Sprintf("The image %s is not on this machine.", ref), Hint: "Pull it first."}
	}
	return image, nil
}

const (
	pullDelay = 600 * time.Millisecond // until the first byte
	pullEvery = 250 * time.Millisecond // between two reports
	pullRate  = 48 * gpu.MiB           // bytes a second
	unpack    = 900 * time.Millisecond // after the last byte
)

// Pull implements [engine.Images]: layers arrive three at a time, at a rate
// that sways as networks do. Its registry is open to everybody.
func (s *Sim) Pull(ctx context.Context, ref string, _ bool, progress func(session.Pull)) (private bool, err error) {
	return false, s.pull(ctx, ref, progress)
}

func (s *Sim) pull(ctx context.Context, ref string, progress func(session.Pull)) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	image, ok := s.published(ref)
	if !ok {
		return session.Because("engine_pull_not-found", session.Say("simPullNotFound", session.Fill("image", ref)),
			session.Say("simPullNotFoundHint")).Failure(nil)
	}
	if err := s.pause(ctx, pullDelay); err != nil {
		return err
	}
	d := &download{left: append([]gpu.Bytes{}, image.Layers...), total: image.download()}
	progress(d.report(0))
	for tick := 0; d.current < d.total; tick++ {
		if err := s.pause(ctx, pullEvery); err != nil {
			return err
		}
		rate := gpu.Bytes(float64(pullRate) * (1 + 0.25*math.Sin(float64(tick)/5) - 0.1*math.Cos(float64(tick)*1.7)))
		d.receive(rate * gpu.Bytes(pullEvery/time.Millisecond) / 1000)
		progress(d.report(gpu.Bytes(float64(rate) * s.config.Speed)))
	}
	if err := s.pause(ctx, unpack); err != nil {
		return err
	}
	s.mu.Lock()
	s.pulled[image.Ref] = true
	s.mu.Unlock()
	return s.save()
}

// download is a pull under way.
type download struct {
	left           []gpu.Bytes
	done           int
	current, total gpu.Bytes
}

// receive spreads n bytes over the layers that are under way.
func (d *download) receive(n gpu.Bytes) {
	const together = 3
	for n > 0 && d.current < d.total {
		active := 0
		for i := range d.left {
			if d.left[i] > 0 && active < together {
				active++
			}
		}
		share := max(n/gpu.Bytes(active), 1)
		for i := range d.left {
			if d.left[i] == 0 || active == 0 || n == 0 {
				continue
			}
			active--
			part := min(share, d.left[i], n)
			d.left[i] -= part
			d.current += part
			n -= part
			if d.left[i] == 0 {
				d.done++
			}
		}
	}
}

func (d *download) report(rate gpu.Bytes) session.Pull {
	return session.Pull{Current: d.current, Total: d.total, Rate: rate, LayersDone: d.done, Layers: len(d.left)}
}
