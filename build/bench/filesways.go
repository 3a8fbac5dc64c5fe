package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
)

// way is one way to copy the file.
type way struct {
	name string
	made string // what is there afterwards; empty: nothing
	run  func() error
	took samples
}

// The ways that Slipway's are compared with come first.
const (
	wayCP = iota
	wayBare
	wayFetched // by plain HTTP
	wayBrought
	waysCompared
)

// compare copies in every way, one after another, so many times over.
func (c *carrier) compare(ctx context.Context, rounds int, r *report) error {
	there, back := filepath.Join(c.dir, "folder", copiedName), filepath.Join(c.dir, "back.bin")
	far := "folder:" + c.folder.Name + "/" + copiedName
	plain, err := startPlainly(ctx, c.dir)
	if err != nil {
		return err
	}
	defer plain.web.Close() //nolint:errcheck // nobody asks it any more
	ways := []*way{
		wayCP:   {name: "cp", made: back, run: func() error { return c.plainCopy(ctx, back) }},
		wayBare: {name: "a bare connection", run: func() error { return loopback(ctx) }},
		wayFetched: {name: "plain HTTP", made: back,
			run: func() error { return plain.fetch(ctx, filepath.Base(c.source), back) }},
		wayBrought: {name: "plain HTTP", made: back,
			run: func() error { return plain.bring(ctx, c.source, filepath.Base(back)) }},
		{name: "1 GiB to a folder, as the user interface sends it", made: there, run: func() error {
			return errors.Join(c.upload(ctx, "bench", 0, copiedBytes), c.finish(ctx, "bench", ""))
		}},
		{name: "1 GiB from a folder, as the user interface fetches it", made: back,
			run: func() error { return c.download(ctx, back, 0) }},
		{name: "1 GiB to a folder, slipway cp with checksums", made: there,
			run: func() error { return c.cliCopy(ctx, c.source, far) }},
		{name: "1 GiB from a folder, slipway cp with checksums", made: back,
			run: func() error { return c.cliCopy(ctx, far, back) }},
	}
	before, err := c.resident()
	if err != nil {
		return err
	}
	if err := c.forgetPeak(); err != nil {
		return err
	}
	for range rounds {
		for _, way := range ways {
			if err := c.time(way); err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
		}
	}
	c.judge(ways, rounds, r)
	peak, err := c.peak()
	if err != nil {
		return err
	}
	r.add(row{
		fmt.Sprintf("the program's memory while %d GiB are copied", (len(ways)-waysCompared)*rounds),
		fmt.Sprintf("%.1f MB at most", float64(peak)/1e6), fmt.Sprintf("before: %.1f MB", float64(before)/1e6), "",
		fmt.Sprintf("grows < %d MiB", mostGrown>>20), peak-before < mostGrown,
	})
	return nil
}

// time copies once and looks whether what was made is what was copied. Every
// way makes a fresh file.
func (c *carrier) time(w *way) error {
	if err := os.RemoveAll(w.made); err != nil {
		return err
	}
	began := time.Now()
	if err := w.run(); err != nil {
		return err
	}
	w.took = append(w.took, time.Since(began))
	if w.made == "" {
		return nil
	}
	return c.same(w.made)
}

// judge compares Slipway's ways with the slowest of those that do no more than
// copy, and tells the rates of all of them.
func (c *carrier) judge(ways []*way, rounds int, r *report) {
	cp, bare := ways[wayCP].took.median(), ways[wayBare].took.median()
	r.add(row{what: fmt.Sprintf("1 GiB over a bare connection of the loopback, from memory to memory, %d times",
		rounds), value: rate(bare), kept: true})
	for i, w := range ways[waysCompared:] {
		plain := ways[wayBrought].took.median()
		if i%2 == 1 {
			plain = ways[wayFetched].took.median()
		}
		took := w.took.median()
		x := ratio(max(cp, bare, plain), took)
		compared := fmt.Sprintf("cp: %s (%.2f); plain HTTP to a file: %s (%.2f)", rate(cp), ratio(cp, took),
			rate(plain), ratio(plain, took))
		r.add(row{w.name + fmt.Sprintf(", %d times", rounds), rate(took), compared, fmt.Sprintf("%.2f", x),
			"≥ 0.7 of the lowest rate", x >= 0.7})
	}
}

func rate(took time.Duration) string {
	return fmt.Sprintf("%.0f MB/s", copiedBytes/1e6/took.Seconds())
}

// same fails where a copy is not what was copied.
func (c *carrier) same(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != c.sum {
		return fmt.Errorf("%s has the checksum %s, not %s", name, got, c.sum)
	}
	return nil
}

// cut breaks off each way half way and goes on. What had come must not be sent again.
func (c *carrier) cut(ctx context.Context, r *report) error {
	there, back := filepath.Join(c.dir, "folder", copiedName), filepath.Join(c.dir, "cut.bin")
	const half = copiedBytes / 2
	if err := c.upload(ctx, "cut", 0, half); err != nil {
		return err
	}
	state, err := copied(c, route.FolderFiles().Upload).With("key", "cut").Ask(ctx, c)
	if err != nil {
		return err
	}
	if state.Offset != half {
		return fmt.Errorf("of an upload that was broken off at %d there are %d bytes", half, state.Offset)
	}
	if err := errors.Join(c.upload(ctx, "cut", state.Offset, copiedBytes), c.finish(ctx, "cut", c.sum),
		c.same(there)); err != nil {
		return err
	}
	if err := os.WriteFile(back, nil, 0o600); err != nil {
		return err
	}
	if err := c.cutDownload(ctx, back, half); err != nil {
		return err
	}
	if err := errors.Join(c.download(ctx, back, half), c.same(back), os.Remove(back), os.Remove(there)); err != nil {
		return err
	}
	far := "folder:" + c.folder.Name + "/" + copiedName
	if err := c.killed(ctx, filepath.Join(c.dir, "folder"), there, c.source, far); err != nil {
		return fmt.Errorf("slipway cp to a folder: %w", err)
	}
	if err := c.killed(ctx, c.dir, back, far, back); err != nil {
		return fmt.Errorf("slipway cp from a folder: %w", err)
	}
	r.add(row{"1 GiB, broken off half way, gone on with (SHA-256 equal)", "both ways, user interface and slipway cp",
		"", "", "whole, nothing sent twice", true})
	return errors.Join(os.Remove(back), os.Remove(there))
}

// cutDownload reads the first bytes of the file and breaks off.
func (c *carrier) cutDownload(ctx context.Context, to string, most int64) error {
	at := copied(c, route.FolderFiles().Read)
	resp, err := c.transfers().Transfer(ctx, at.Method(), at.Target(), nil, nil)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.CopyN(file, resp.Body, most)
	return errors.Join(err, resp.Body.Close(), file.Close())
}

// killed kills slipway cp half way and runs it again. The second must go on with
// the part of the first, which becomes the file itself.
func (c *carrier) killed(ctx context.Context, where, made, from, to string) error {
	command := c.cli(ctx, "cp", "-f", from, to)
	if err := command.Start(); err != nil {
		return err
	}
	var first os.FileInfo
	for first == nil || first.Size() < copiedBytes/2 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(time.Millisecond)
		if parts, err := filepath.Glob(filepath.Join(where, ".slipway-*.part")); err == nil && len(parts) == 1 {
			first, _ = os.Stat(parts[0]) // nil: it is looked for again
		} else if first != nil {
			return errors.New("it was done before it could be killed")
		}
	}
	if err := command.Process.Kill(); err != nil {
		return err
	}
	_ = command.Wait() // it was killed
	if err := c.cliCopy(ctx, from, to); err != nil {
		return err
	}
	second, err := os.Stat(made)
	if err != nil {
		return err
	}
	if !os.SameFile(first, second) {
		return errors.New("it was begun anew")
	}
	return c.same(made)
}

// list reads a folder with many entries to its end.
func (c *carrier) list(ctx context.Context, r *report) error {
	dir := filepath.Join(c.dir, "many")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i := range listedFiles {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("image-%06d.png", i)), []byte("x"), 0o600); err != nil {
			return err
		}
	}
	folder, err := route.FolderCreate.Body(api.FolderRequest{
		FolderRequest: session.FolderRequest{Name: "bench-many", Path: dir}}).Ask(ctx, c)
	if err != nil {
		return err
	}
	var times samples
	for range 20 {
		began := time.Now()
		count, after := 0, ""
		for more := true; more; {
			listing, err := route.FolderFiles().List.At(string(folder.ID)).With("after", after).Ask(ctx, c)
			if err != nil {
				return err
			}
			count += len(listing.Entries)
			if more = listing.More; more {
				after = listing.Entries[len(listing.Entries)-1].Name
			}
		}
		times = append(times, time.Since(began))
		if count != listedFiles {
			return fmt.Errorf("%d entries were listed", count)
		}
	}
	r.add(row{fmt.Sprintf("a folder with %d entries, listed to its last byte", listedFiles), times.text(), "", "",
		"p50 < 300 ms", times.median() < 300*time.Millisecond})
	return nil
}
