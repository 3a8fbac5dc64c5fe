// Command rpcgen writes what follows from the table of the agent's methods. The
// table is the interfaces that [slipway/backend/session.Agent] is made of. Run it in the module with
//
//	go run ./build/rpcgen          write all files
//	go run ./build/rpcgen -check   exit with 1 when one of them is out of date
//
// Each method ends its comment with a directive:
//
//	//rpc:method name=rename effect=again who=owner audit=name
//
//	name    on the wire; agents in use know it by that
//	effect  what a call does that is cut: read changes nothing, again asks for a state, once is never repeated
//	class   of its stream: control, interactive or bulk, where it is not that of calls of its shape
//	limit   until the answer: short (the default), long, checking or slow
//	args    names in the JSON of the arguments, where they are not those of the parameters: "to?" is left out when
//	        empty, "+" holds the fields of its parameter. A struct alone is the arguments
//	reply   the type of package agentrpc that an answer without a type of its own has
//	who     may call it: owner (of the session, folder or place that it names), admin, anyone, or custom
//	audit   what the log says beside the method; without it only refusals are written down
//	as      the method's name in that log
//
// From that come the arguments, the table and the client's methods (agentrpc), the
// rules of who may call what (access), the name that an agent has here (hub), an
// agent for tests that answers nothing (hub/hubtest), the way to the files of a place
// (agent/guests, agent/folders, guest/link and guest), and a page of them all (agentrpc/methods.md).
//
// What differs is written by hand, under the name that it would have here:
//
//	func (c *Client) Logs    in agentrpc takes the place of the client's method,
//	type logsArgs            of the arguments,
//	func openLogs            of the opening of a download, which can then be resumed by logsArgs.at,
//	func checkLogs           says from the arguments what an answer must be about;
//	func (v *view) Launch    in access is the rule of a method with who=custom, and of no other;
//	func (r *renamed) Launch in hub takes the place of the method there;
//	launch, of a room        in hub/hubtest is what the agent for tests answers.
//
// A method without a directive, or without who, is an error.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "write nothing; exit with 1 when a file is out of date")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "rpcgen:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	if _, err := os.Stat("go.mod"); err != nil {
		return errors.New("run it at the root of the module")
	}
	files, err := generate(".")
	if err != nil {
		return err
	}
	for path, content := range files {
		have, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if bytes.Equal(have, content) {
			continue
		}
		if check {
			return fmt.Errorf("%s is out of date; run make gen and commit the result", path)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate makes every file for the module at root, by its path.
func generate(root string) (map[string][]byte, error) {
	methods, err := readMethods(filepath.Join(root, "backend/session"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{filepath.Join(root, "backend/agentrpc/methods.md"): page(methods)}
	for dir, write := range map[string]func(*writer, []method) error{
		"backend/agentrpc": writeClient,
		"backend/access":   writeRules,
		"backend/hub":      writeRenamed,

		"backend/hub/hubtest":   writeFake,
		"backend/agent/guests":  writePlaced,
		"backend/agent/folders": writeInFolder,
		"backend/guest/link":    writeGuestCalls,
		"backend/guest":         writeGuest,
	} {
		at := filepath.Join(root, dir)
		byHand, err := readHand(at)
		if err != nil {
			return nil, err
		}
		w := &writer{hand: byHand}
		if err := write(w, methods); err != nil {
			return nil, err
		}
		source, err := w.source(filepath.Base(dir))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		files[filepath.Join(at, "methods.gen.go")] = source
	}
	return files, nil
}

// writer collects the source of one file.
type writer struct {
	bytes.Buffer
	hand hand // what the package has by hand
}

func (w *writer) f(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// imports are the packages that generated files may use.
var imports = []string{"context", "io", "net", "time", "slipway/backend/files", "slipway/backend/folder",
	"slipway/backend/guest/link", "slipway/backend/session", "slipway/gpu", "slipway/tunnel"}

// source is the file, formatted, with the imports that it needs.
func (w *writer) source(pkg string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated by rpcgen; DO NOT EDIT.\n\npackage %s\n\nimport (\n", pkg)
	ours := false
	for _, path := range imports {
		if !regexp.MustCompile(`\b` + filepath.Base(path) + `\.[A-Z]`).Match(w.Bytes()) {
			continue
		}
		if strings.HasPrefix(path, "slipway/") && !ours {
			ours = true
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%q\n", path)
	}
	b.WriteString(")\n\n")
	b.Write(w.Bytes())
	return format.Source(b.Bytes())
}

// page is the table of methods for people.
func page(methods []method) []byte {
	var b bytes.Buffer
	b.WriteString("<!-- Written by build/rpcgen from backend/session; make gen writes it anew. -->\n\n" +
		"# The agent's methods\n\nWho: *owner* of the session, folder or place that a call names, *admin*, *anyone* " +
		"who may reach the agent, or\n*custom*: a rule written by hand in package access. Everything an owner is " +
		"refused is in the audit log; *audited* methods\nare there in any case, with what the column names.\n\n" +
		"| method | on the wire | class | effect | limit | who | audited |\n|---|---|---|---|---|---|---|\n")
	for _, m := range methods {
		audited := m.audit
		if m.who == whoCustom {
			audited = "custom"
		}
		fmt.Fprintf(&b, "| %s.%s | `%s` | %s | %s | %s | %s | %s |\n", m.face, m.name, m.wire, m.class, m.effect,
			m.limit, m.who, audited)
	}
	return b.Bytes()
}

// one returns the values of allowed that value is one of, or an error.
func one(what, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s is %q; it is one of %s", what, value, strings.Join(allowed, ", "))
}
