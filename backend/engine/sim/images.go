package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// images are those of the machine and of its registry.
type images struct {
	*machine
	users func(image session.Image) []string // the containers that use an image; called with mu held

	here  []session.Image      // those of the machine; guarded by mu, as what follows
	parts []session.ImageParts // what those are made of that were brought
}

// FullRef adds the default tag to a reference and removes the default registry.
func FullRef(ref string) string {
	ref = strings.TrimPrefix(strings.TrimPrefix(ref, "docker.io/"), "library/")
	if last := ref[strings.LastIndex(ref, "/")+1:]; strings.ContainsAny(last, ":@") {
		return ref
	}
	return ref + ":latest"
}

// published returns the registry's image of a reference.
func (s *images) published(ref string) (Image, bool) {
	name, digest, _ := strings.Cut(ref, "@")
	for _, image := range s.config.Catalogue {
		if FullRef(image.Ref) == FullRef(name) && (digest == "" || image.describe().ID == digest) {
			return image, true
		}
	}
	return Image{}, false
}

// find returns the machine's image of a reference or id.
func (s *images) find(ref string) (session.Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resolve(ref)
}

// resolve is find with mu held.
func (s *images) resolve(ref string) (session.Image, bool) {
	if session.IsEmptyImage(ref) {
		return Image{Ref: session.EmptyImage}.describe(), true
	}
	name, digest, _ := strings.Cut(ref, "@")
	for _, image := range s.here {
		named := func(other string) bool { return FullRef(other) == FullRef(name) }
		if image.ID == ref || digest != "" && image.ID == digest || digest == "" &&
			slices.ContainsFunc(image.Refs, named) {
			return image, true
		}
	}
	return session.Image{}, false
}

// keep adds an image, or names to an existing one. Other images lose these names; without any they go. It needs mu.
func (s *images) keep(image session.Image) {
	kept := []session.Image{}
	for _, other := range s.here {
		if other.ID == image.ID {
			refs := slices.Concat(other.Refs, image.Refs)
			slices.Sort(refs)
			image, image.Refs = other, slices.Compact(refs)
			continue
		}
		other.Refs = slices.DeleteFunc(slices.Clone(other.Refs),
			func(ref string) bool { return slices.Contains(image.Refs, ref) })
		if len(other.Refs) > 0 {
			kept = append(kept, other)
		}
	}
	s.here = append(kept, image)
	slices.SortFunc(s.here, func(a, b session.Image) int { return strings.Compare(a.Refs[0], b.Refs[0]) })
}

// forget needs mu.
func (s *images) forget(image session.Image) {
	s.parts = slices.DeleteFunc(s.parts, func(p session.ImageParts) bool { return p.ID == image.ID })
	s.here = slices.DeleteFunc(s.here, func(i session.Image) bool { return i.ID == image.ID })
}

func (s *images) Images(ctx context.Context) ([]session.Image, error) {
	return locked(ctx, s.machine, func() ([]session.Image, error) { return slices.Clone(s.here), nil })
}

func (s *images) Image(ctx context.Context, ref string) (session.Image, error) {
	return locked(ctx, s.machine, func() (session.Image, error) {
		image, ok := s.resolve(ref)
		if !ok {
			return session.Image{}, session.NewError(session.CodeNoImage,
				fmt.Sprintf("The image %s is not on this machine.", ref), "Pull it first.")
		}
		return image, nil
	})
}

func (s *images) RemoveImage(ctx context.Context, ref string) error {
	image, err := s.Image(ctx, ref)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if users := s.users(image); len(users) > 0 {
		s.mu.Unlock()
		return session.NewError(session.CodeImageConflict,
			fmt.Sprintf("The image %s is used by the container %s.", ref, users[0]), "End that session first.")
	}
	s.forget(image)
	s.mu.Unlock()
	return s.save()
}

// AddImage adds an image to the machine that no registry needs to have.
func (s *images) AddImage(ref string) error {
	s.mu.Lock()
	s.keep(Image{Ref: FullRef(ref), Size: 120 * gpu.MiB}.describe())
	s.mu.Unlock()
	return s.save()
}

// Evict removes an image from the machine, even if it is in use.
func (s *images) Evict(ref string) error {
	s.mu.Lock()
	if image, ok := s.resolve(ref); ok {
		s.forget(image)
	}
	s.mu.Unlock()
	return s.save()
}

// DiskUse implements [engine.ImageStore]. Committed images share the layers of their base.
func (s *images) DiskUse(ctx context.Context) (session.ImageDisk, error) {
	return locked(ctx, s.machine, func() (session.ImageDisk, error) { return s.disk(), nil })
}

// disk needs mu.
func (s *images) disk() (disk session.ImageDisk) {
	for _, image := range s.here {
		room := session.ImageRoom{Image: image, Alone: image.Size, Containers: len(s.users(image))}
		for _, other := range s.here {
			switch {
			case other.Origin != nil && FullRef(other.Origin.Base) == FullRef(image.Refs[0]):
				room.Alone = 0 // what is made of it keeps its layers
			case image.Origin != nil && FullRef(image.Origin.Base) == FullRef(other.Refs[0]):
				room.Alone = max(image.Size-other.Size, 0)
			}
		}
		disk.Total += room.Alone
		if room.Alone == 0 {
			disk.Total += image.Size
		}
		disk.Images = append(disk.Images, room)
	}
	return disk
}

const (
	pullDelay = 600 * time.Millisecond // until the first byte
	pullEvery = 250 * time.Millisecond // between two reports
	pullRate  = 48 * gpu.MiB           // bytes a second
	unpack    = 900 * time.Millisecond // after the last byte
)

// Pull implements [engine.Images]: layers arrive one after the other, at a varying rate. Its registry is public.
func (s *images) Pull(ctx context.Context, ref string, _ engine.Login,
	progress func(session.Pull)) (private bool, err error) {
	if err := s.check(ctx); err != nil {
		return false, err
	}
	image, ok := s.published(ref)
	if !ok {
		return false, session.Because(session.CodePullNotFound,
			session.Say("simPullNotFound", session.Fill("image", ref)), session.Say("simPullNotFoundHint")).Failure(nil)
	}
	if err := s.pause(ctx, pullDelay); err != nil {
		return false, err
	}
	told := session.Pull{Total: image.download(), Layers: len(image.Layers)}
	progress(told)
	for tick := 0; told.Current < told.Total; tick++ {
		if err := s.pause(ctx, pullEvery); err != nil {
			return false, err
		}
		rate := gpu.Bytes(float64(pullRate) * (1 + 0.25*math.Sin(float64(tick)/5) - 0.1*math.Cos(float64(tick)*1.7)))
		told.Current = min(told.Total, told.Current+rate*gpu.Bytes(pullEvery/time.Millisecond)/1000)
		told.Rate, told.LayersDone = gpu.Bytes(float64(rate)*s.config.Speed), 0
		for left := told.Current; told.LayersDone < told.Layers && left >= image.Layers[told.LayersDone]; {
			left -= image.Layers[told.LayersDone]
			told.LayersDone++
		}
		progress(told)
	}
	if err := s.pause(ctx, unpack); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.keep(image.describe())
	s.mu.Unlock()
	return false, s.save()
}

const (
	// A container changes a little at its start and more for each minute, as people install things.
	changedFirst = 24 * gpu.MiB
	changedEach  = 16 * gpu.MiB
	changedMost  = 4 * gpu.GiB

	commitDelay = 800 * time.Millisecond
	commitRate  = 160 * gpu.MiB // bytes a second
)

func (s *containers) Changed(ctx context.Context, id string) (gpu.Bytes, error) {
	state, err := s.Inspect(ctx, id)
	if err != nil || state.StartedAt.IsZero() {
		return 0, err
	}
	end := s.config.Clock.Now()
	if !state.Running {
		end = state.FinishedAt
	}
	minutes := gpu.Bytes(max(end.Sub(state.StartedAt), 0) / time.Minute)
	return min(changedFirst+minutes*changedEach, changedMost), nil
}

func (s *containers) Commit(ctx context.Context, id string, c engine.Commit) (session.Image, error) {
	changed, err := s.Changed(ctx, id)
	if err != nil {
		return session.Image{}, err
	}
	s.mu.Lock()
	from := s.byID[id].Spec.Image
	s.mu.Unlock()
	base, _ := s.images.find(from)
	if err := s.pause(ctx, commitDelay+time.Duration(changed/commitRate)*time.Second); err != nil {
		return session.Image{}, err
	}
	if _, taken := s.images.find(c.Ref); taken {
		return session.Image{}, session.NewError(session.CodeImageExists,
			fmt.Sprintf("There is an image named %s already.", c.Ref), "Choose another name, or remove it.")
	}
	now := s.config.Clock.Now().UTC()
	origin := c.Origin
	made := session.Image{
		ID: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(c.Ref+now.String()))), Refs: []string{c.Ref},
		Size:      base.Size + changed,
		CreatedAt: now, Arch: arch(), Labels: origin.Labels(), Origin: &origin,
	}
	s.mu.Lock()
	s.images.keep(made)
	s.mu.Unlock()
	return made, s.save()
}

// Image is an image of a simulated machine or registry.
type Image struct {
	Ref       string
	Layers    []gpu.Bytes // as they are downloaded
	Size      gpu.Bytes   // on disk; 0: a little over twice the download
	Installed bool        // there from the beginning
}

// Catalogue is the content of the simulated registry. Some images are installed from the beginning.
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
		image("quay.io/jupyter/pytorch-notebook:cuda12-latest", 5500, false),
		image("pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime", 3900, false),
		image("pytorch/pytorch:2.8.0-cuda12.8-cudnn9-devel", 8200, false),
		image("tensorflow/tensorflow:2.18.0-gpu-jupyter", 3700, false),
		image("quay.io/jupyter/r-notebook:latest", 1000, false),
		image("nvidia/cuda:12.8.1-cudnn-devel-ubuntu24.04", 5600, false),
		image("nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04", 2400, false),
		image("rocker/tidyverse:4.4.2", 900, false), image("r-base:4.4.2", 340, false), image("julia:1.11", 300, false),
		image("julia:1.10", 290, false),
		image("nvidia/cuda:12.6.2-cudnn-devel-ubuntu24.04", 5200, false),
		image("nvidia/cuda:12.6.2-cudnn-runtime-ubuntu24.04", 2200, false),
		image("ubuntu:24.04", 30, true), image("ubuntu:22.04", 30, false), image("debian:12", 50, false),
		image("debian:12-slim", 30, false),
	}
}

// layers splits a download like real images: a base, a few large layers, and small ones.
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

// Pinned is an image of the catalogue with its digest.
func Pinned(ref string) string { return session.PinImage(ref, Image{Ref: ref}.describe()) }

func arch() string {
	if runtime.GOARCH == "arm64" {
		return "arm64"
	}
	return "amd64"
}
