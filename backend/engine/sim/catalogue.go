package sim

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

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
