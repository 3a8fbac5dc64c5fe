package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/session"
	"slipway/build/bench/measure"
)

const (
	copiedBytes = 1 << 30     // size of the copied file
	pieceBytes  = 64 << 20    // one upload request of the user interface
	copiedName  = "large.bin" // the file in the folder
	listedFiles = 10_000      // entries in the listed folder
	mostGrown   = 64 << 20    // memory that the program may gain while it copies
)

type carrier struct {
	*bench
	dir    string // of our own
	source string // the file that is copied
	sum    string // its SHA-256
	folder api.Folder
	there  string // the copy in the folder
	far    string // the same for slipway cp
	back   string // the copy that is fetched
}

// measureFiles uploads and downloads a large file like the user interface and the command line, beside cp and a bare
// loopback connection, and lists a large folder.
func (b *bench) measureFiles() {
	dir := measure.Get(os.MkdirTemp("", "slipway-bench-files-"))
	defer os.RemoveAll(dir)
	c := &carrier{bench: b, dir: dir, source: filepath.Join(dir, "source.bin"), back: filepath.Join(dir, "back.bin")}
	c.sum = makeNoise(c.source)
	// The folder is a directory of this machine, so that its content can be checked.
	c.folder = c.link("bench-files", "folder")
	c.there, c.far = filepath.Join(dir, "folder", copiedName), "folder:"+c.folder.Name+"/"+copiedName
	c.cut()
	c.compare()
	c.list()
}

// link makes a directory and a folder of it.
func (c *carrier) link(name, dir string) api.Folder {
	path := filepath.Join(c.dir, dir)
	measure.OK(os.Mkdir(path, 0o700))
	return measure.Get(route.FolderCreate.Body(api.FolderRequest{
		FolderRequest: session.FolderRequest{Name: name, Path: path}}).Ask(c.ctx, c))
}

// makeNoise makes an incompressible file of copiedBytes and returns its SHA-256.
func makeNoise(name string) string {
	file := measure.Get(os.Create(name))
	defer file.Close()
	sum := sha256.New()
	measure.Get(io.CopyN(io.MultiWriter(file, sum), rand.NewChaCha8([32]byte{1}), copiedBytes))
	measure.OK(file.Sync())
	return hex.EncodeToString(sum.Sum(nil))
}

func copied[In, Out any](c *carrier, at route.Route[In, Out]) route.Route[In, Out] {
	return at.At(string(c.folder.ID)).With("path", copiedName)
}

// transfer makes a request with a long body or answer. The caller closes the answer.
func transfer[In, Out any](c *carrier, at route.Route[In, Out], header http.Header, body io.Reader) io.ReadCloser {
	patient := *c.Client
	patient.HTTP = &http.Client{Transport: c.HTTP.Transport}
	answer, err := patient.Transfer(c.ctx, at.Method(), at.Target(), header, body) //nolint:bodyclose // see above
	measure.OK(err)
	return answer.Body
}

// upload uploads the file from an offset to another in pieces.
func (c *carrier) upload(key string, from, most int64) {
	file := measure.Get(os.Open(c.source))
	defer file.Close()
	for at := from; at < most; at += pieceBytes {
		piece := io.NewSectionReader(file, at, min(pieceBytes, most-at))
		to := copied(c, route.FolderFiles().UploadWrite).With("key", key).With("offset", strconv.FormatInt(at, 10))
		measure.OK(transfer(c, to, nil, client.Sized{Reader: piece, Length: piece.Size()}).Close())
	}
}

// finish completes an upload; it compares a checksum if sum is set.
func (c *carrier) finish(key, sum string) {
	measure.Get(copied(c, route.FolderFiles().UploadFinish).With("key", key).Body(api.FinishRequest{
		Finish: session.Finish{Size: copiedBytes, SHA256: sum, Conflict: "replace"}}).Ask(c.ctx, c))
}

// download downloads the file from an offset.
func (c *carrier) download(from int64) {
	body := transfer(c, copied(c, route.FolderFiles().Read),
		http.Header{"Range": {fmt.Sprintf("bytes=%d-", from)}}, nil)
	defer body.Close()
	measure.OK(writeDown(c.back, from, body))
}

func (c *carrier) cliCopy(from, to string) {
	c.slipway("cp", "-f", from, to)
}

// plainCopy is cp with a sync, which all our copies do.
func (c *carrier) plainCopy() {
	if said, err := exec.CommandContext(c.ctx, "cp", c.source, c.back).CombinedOutput(); err != nil {
		measure.Fail("cp: %w: %s", err, said)
	}
	file := measure.Get(os.OpenFile(c.back, os.O_RDWR, 0))
	measure.OK(file.Sync(), file.Close())
}

// loopback sends as many bytes over a bare connection.
func loopback(ctx context.Context) {
	listener := measure.Get((&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"))
	defer listener.Close()
	sent := make(chan error, 1)
	go func() {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
		if err != nil {
			sent <- err
			return
		}
		buffer := make([]byte, hopBytes)
		for left := copiedBytes; left > 0 && err == nil; left -= len(buffer) {
			_, err = conn.Write(buffer)
		}
		sent <- errors.Join(err, conn.Close())
	}()
	conn := measure.Get(listener.Accept())
	defer conn.Close()
	buffer := make([]byte, hopBytes)
	for {
		_, err := conn.Read(buffer)
		if errors.Is(err, io.EOF) {
			measure.OK(<-sent)
			return
		}
		measure.OK(err)
	}
}

type way struct {
	name string
	made string // what is there afterwards; empty: nothing
	run  func()
	took samples
}

// The ways to compare with come first.
const (
	wayCP = iota
	wayBare
	wayFetched // by plain HTTP
	wayBrought
	waysCompared
)

// compare copies in every way in turn.
func (c *carrier) compare() {
	plain := startPlainly(c.ctx, c.dir)
	defer plain.web.Close()
	ways := []*way{
		wayCP:      {name: "cp", made: c.back, run: c.plainCopy},
		wayBare:    {name: "a bare connection", run: func() { loopback(c.ctx) }},
		wayFetched: {name: "plain HTTP", made: c.back, run: func() { plain.fetch(filepath.Base(c.source), c.back) }},
		wayBrought: {name: "plain HTTP", made: c.back, run: func() {
			measure.OK(plain.do(http.MethodPut, filepath.Base(c.back), measure.Get(os.Open(c.source))).Close())
		}},
		{name: "1 GiB to a folder, as the user interface sends it", made: c.there, run: func() {
			c.upload("bench", 0, copiedBytes)
			c.finish("bench", "")
		}},
		{name: "1 GiB from a folder, as the user interface fetches it", made: c.back, run: func() { c.download(0) }},
		{name: "1 GiB to a folder, slipway cp with checksums", made: c.there,
			run: func() { c.cliCopy(c.source, c.far) }},
		{name: "1 GiB from a folder, slipway cp with checksums", made: c.back,
			run: func() { c.cliCopy(c.far, c.back) }},
	}
	before := c.memory("VmRSS")
	measure.OK(os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.command.Process.Pid), []byte("5"), 0)) // the peak
	for range c.o.copies {
		for _, w := range ways {
			measure.OK(os.RemoveAll(w.made)) // every way makes a fresh file
			began := time.Now()
			w.run()
			w.took = append(w.took, time.Since(began))
			if w.made != "" {
				c.same(w.made)
			}
		}
	}
	bare := ways[wayBare].took.median()
	c.add(row{what: fmt.Sprintf("1 GiB over a bare connection of the loopback, from memory to memory, %d times",
		c.o.copies), value: rate(bare), kept: true})
	for i, w := range ways[waysCompared:] {
		plain := ways[wayBrought].took.median()
		if i%2 == 1 {
			plain = ways[wayFetched].took.median()
		}
		c.addRate(w.name, w.took.median(), ways[wayCP].took.median(), "plain HTTP to a file", plain, bare)
	}
	c.addGrowth(fmt.Sprintf("the program's memory while %d GiB are copied", (len(ways)-waysCompared)*c.o.copies),
		float64(before)/1e6, float64(c.memory("VmHWM"))/1e6)
}

// addRate compares with the slowest of those that only copy: cp, a minimal server, and a bare connection; 0 is none.
func (b *bench) addRate(what string, took, cp time.Duration, least string, plain, bare time.Duration) {
	x, limit := ratio(max(cp, plain, bare), took), "≥ 0.7 of the lowest rate"
	if bare == 0 {
		limit = "≥ 0.7 of the lower rate"
	}
	compared := fmt.Sprintf("cp: %s (%.2f); %s: %s (%.2f)", rate(cp), ratio(cp, took), least, rate(plain),
		ratio(plain, took))
	b.add(row{fmt.Sprintf("%s, %d times", what, b.o.copies), rate(took), compared, fmt.Sprintf("%.2f", x), limit,
		x >= 0.7})
}

// addGrowth reports the growth of the program's memory, in MB.
func (b *bench) addGrowth(what string, before, peak float64) {
	b.add(row{what, fmt.Sprintf("%.1f MB at most", peak), fmt.Sprintf("before: %.1f MB", before), "",
		fmt.Sprintf("grows < %d MiB", mostGrown>>20), peak-before < mostGrown/1e6})
}

func rate(took time.Duration) string {
	return fmt.Sprintf("%.0f MB/s", copiedBytes/1e6/took.Seconds())
}

// same fails if a copy differs from the source.
func (c *carrier) same(name string) {
	file := measure.Get(os.Open(name))
	defer file.Close()
	sum := sha256.New()
	measure.Get(io.Copy(sum, file))
	if got := hex.EncodeToString(sum.Sum(nil)); got != c.sum {
		measure.Fail("%s has the checksum %s, not %s", name, got, c.sum)
	}
}

// cut interrupts each way halfway and resumes it. Nothing may be sent twice.
func (c *carrier) cut() {
	const half = copiedBytes / 2
	c.upload("cut", 0, half)
	state := measure.Get(copied(c, route.FolderFiles().Upload).With("key", "cut").Ask(c.ctx, c))
	if state.Offset != half {
		measure.Fail("of an upload that was broken off at %d there are %d bytes", half, state.Offset)
	}
	c.upload("cut", state.Offset, copiedBytes)
	c.finish("cut", c.sum)
	c.same(c.there)
	body := transfer(c, copied(c, route.FolderFiles().Read), nil, nil)
	err := writeDown(c.back, 0, io.LimitReader(body, half))
	measure.OK(err, body.Close())
	c.download(half)
	c.same(c.back)
	measure.OK(os.Remove(c.back), os.Remove(c.there))
	c.killed(filepath.Join(c.dir, "folder"), c.there, c.source, c.far)
	c.killed(c.dir, c.back, c.far, c.back)
	c.add(row{"1 GiB, broken off half way, gone on with (SHA-256 equal)", "both ways, user interface and slipway cp",
		"", "", "whole, nothing sent twice", true})
	measure.OK(os.Remove(c.back), os.Remove(c.there))
}

// killed kills slipway cp halfway and runs it again. The second must resume the partial file of the first.
func (c *carrier) killed(where, made, from, to string) {
	command := c.cli("cp", "-f", from, to)
	measure.OK(command.Start())
	var first os.FileInfo
	for first == nil || first.Size() < copiedBytes/2 {
		measure.OK(c.ctx.Err())
		time.Sleep(time.Millisecond)
		if parts, err := filepath.Glob(filepath.Join(where, ".slipway-*.part")); err == nil && len(parts) == 1 {
			first, _ = os.Stat(parts[0]) // nil: it is looked for again
		} else if first != nil {
			measure.Fail("slipway cp %s %s was done before it could be killed", from, to)
		}
	}
	measure.OK(command.Process.Kill())
	_ = command.Wait() // it was killed
	c.cliCopy(from, to)
	if !os.SameFile(first, measure.Get(os.Stat(made))) {
		measure.Fail("slipway cp %s %s was begun anew", from, to)
	}
	c.same(made)
}

func (c *carrier) list() {
	folder := c.link("bench-many", "many")
	for i := range listedFiles {
		measure.OK(os.WriteFile(filepath.Join(c.dir, "many", fmt.Sprintf("image-%06d.png", i)), []byte("x"), 0o600))
	}
	var times samples
	for range 20 {
		began := time.Now()
		count, after := 0, ""
		for more := true; more; {
			listing := measure.Get(route.FolderFiles().List.At(string(folder.ID)).With("after", after).Ask(c.ctx, c))
			count += len(listing.Entries)
			if more = listing.More; more {
				after = listing.Entries[len(listing.Entries)-1].Name
			}
		}
		times = append(times, time.Since(began))
		if count != listedFiles {
			measure.Fail("%d entries were listed", count)
		}
	}
	c.add(row{fmt.Sprintf("a folder with %d entries, listed to its last byte", listedFiles), times.text(), "", "",
		"p50 < 300 ms", times.median() < 300*time.Millisecond})
}

// measureBrowser uploads and downloads a large file in Chromium, beside cp and a minimal HTTP server, and lists and
// scrolls a large folder. frontend/e2e/browser.figures.ts drives the browser.
func (b *bench) measureBrowser() {
	dir := measure.Get(os.MkdirTemp("", "slipway-bench-browser-"))
	defer os.RemoveAll(dir)
	makeNoise(filepath.Join(dir, copiedName))
	plain := startPlainly(b.ctx, dir)
	defer plain.web.Close()
	printed := b.inBrowser("browser.figures", "SLIPWAY_PLAIN="+plain.url, "SLIPWAY_PLAIN_DIR="+dir,
		"SLIPWAY_ROUNDS="+strconv.Itoa(b.o.copies))
	figure := func(unit string) float64 { return metric(printed, unit) }
	took := func(unit string) time.Duration { return time.Duration(figure(unit) * float64(time.Millisecond)) }
	for _, way := range [][2]string{{"up-ms", "to"}, {"down-ms", "from"}} {
		b.addRate("1 GiB "+way[1]+" a folder by the page, in Chromium", took(way[0]), took("cp-ms"),
			"plain HTTP in the same browser", took("plain-"+way[0]), 0)
	}
	b.addGrowth("the program's memory meanwhile", figure("before-MB"), figure("peak-MB"))
	b.add(row{what: "1 GiB to a folder by the page, with a cut of 1.5 s (SHA-256 equal)",
		value: took("cut-ms").Round(time.Millisecond).String(), kept: true})
	listed := figure("listed-ms")
	b.add(row{fmt.Sprintf("a folder with %d entries, from the click to all of them painted, in Chromium", listedFiles),
		fmt.Sprintf("p50 %.0f ms", listed), "", "", "p50 < 300 ms", listed < 300})
	b.addFrames(printed)
}

// addFrames reports how smoothly a list was scrolled.
func (b *bench) addFrames(printed string) {
	b.add(row{what: "scrolled to its end, from frame to frame",
		value: fmt.Sprintf("p50 %.1f ms, p95 %.1f ms, longest %.0f ms", metric(printed, "frame-ms"),
			metric(printed, "late-frame-ms"), metric(printed, "longest-frame-ms")), kept: true})
}

// measureWaiting shows and scrolls the list of sessions while a thousand wait. frontend/e2e/waiting.figures.ts drives
// the browser.
func (b *bench) measureWaiting() {
	printed := b.inBrowser("waiting.figures")
	b.add(row{what: "a list of 1,000 waiting sessions, from the load of the page to its rows, in Chromium",
		value: fmt.Sprintf("%.0f ms", metric(printed, "shown-ms")), kept: true})
	b.addFrames(printed)
	b.add(row{what: "one of them is terminated, from the request to the list without it",
		value: fmt.Sprintf("%.0f ms", metric(printed, "gone-ms")), kept: true})
}

// inBrowser runs a file of measurements in frontend/e2e and returns what it printed.
func (b *bench) inBrowser(file string, env ...string) string {
	command := exec.CommandContext(b.ctx, "npx", "vitest", "run", "--config", "e2e/figures.config.ts", file)
	command.Dir = "frontend"
	command.Env = append(append(os.Environ(), "SLIPWAY_BIN="+measure.Get(filepath.Abs(b.o.binary))), env...)
	printed, err := command.CombinedOutput()
	if err != nil {
		measure.Fail("%w\n%s", err, printed)
	}
	return string(printed)
}

// measureClick compares a quick start with docker run and Jupyter's own start, in turns: until the page of Jupyter
// begins to load, and until a cell has printed. frontend/e2e/start.figures.ts drives the browser.
func (b *bench) measureClick() {
	// Chromium drops what it loads when this machine gets an address, as the end of each container's cable does.
	const ipv6 = "/proc/sys/net/ipv6/conf/default/disable_ipv6"
	if before, err := os.ReadFile(ipv6); err == nil && os.WriteFile(ipv6, []byte("1"), 0) == nil {
		defer func() { measure.OK(os.WriteFile(ipv6, before, 0)) }()
	}
	printed := b.inBrowser("start.figures", "SLIPWAY_ROUNDS="+strconv.Itoa(b.o.clicks))
	for _, what := range [][2]string{{"ready-ms", "the page of Jupyter loads"}, {"cell-ms", "a cell has printed"}} {
		ours, theirs := metric(printed, what[0]), metric(printed, "docker-"+what[0])
		b.add(row{fmt.Sprintf("quick start, from the click until %s, %d times", what[1], b.o.clicks),
			fmt.Sprintf("p50 %.0f ms", ours), fmt.Sprintf("docker run and Jupyter: p50 %.0f ms", theirs),
			fmt.Sprintf("%.2f", ours/theirs), "≤ 1.3", ours <= 1.3*theirs})
	}
	clicks := metric(printed, "clicks")
	b.add(row{what: "clicks from an empty page to a running cell", value: fmt.Sprintf("%.0f", clicks), limit: "≤ 2",
		kept: clicks <= 2})
}
